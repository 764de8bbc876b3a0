"""Chooses the index for a declared order."""

from __future__ import annotations

from twinstream.core.matching.epochs import EpochsIndex
from twinstream.core.matching.index import Hooks, Index
from twinstream.core.matching.keyed import KeyedIndex
from twinstream.core.matching.lanes import LanesIndex
from twinstream.core.matching.pairwise import PairwiseIndex
from twinstream.core.matching.rules import RuledIndex
from twinstream.core.order import Branches, Epochs, Keyed, Lanes, Order, Pairwise, Ruled


def index_of(order: Order, hooks: Hooks, depth: int = 0) -> Index:
    """An empty index for an order, at `depth` in the routes."""
    match order:
        case Lanes():
            return LanesIndex(order, hooks, depth)
        case Epochs(inner):
            return EpochsIndex(order, hooks, depth, lambda: index_of(inner, hooks, depth))
        case Keyed(inner):
            return KeyedIndex(depth, lambda _key: index_of(inner, hooks, depth + 1))
        case Branches(orders):
            return KeyedIndex(depth, lambda number: index_of(orders[number], hooks, depth + 1))
        case Ruled():
            return RuledIndex(order, hooks, depth)
        case Pairwise():
            return PairwiseIndex(order, hooks, depth)
