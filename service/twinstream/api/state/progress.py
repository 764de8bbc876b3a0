"""Extracts the progress of a comparison from its status, with the lags added up."""

from __future__ import annotations

from twinstream.api.gate.samples import total_lag
from twinstream.api.http.schemas import Progress, SideProgress
from twinstream.status.common import Sides
from twinstream.status.comparison import ComparisonStatus, PartitionProgress, Version


def progress_of(status: ComparisonStatus) -> Progress:
    """The progress in a status, with the lags added up."""
    return Progress(
        comparison=status.name,
        sides=Sides[SideProgress](
            reference=_side(status.reference, status.progress.reference),
            candidate=_side(status.candidate, status.progress.candidate),
        ),
        verified_up_to=status.verified_up_to,
        verified_through=status.verified_through,
        updated_at=status.updated_at,
    )


def _side(version: Version, partitions: list[PartitionProgress]) -> SideProgress:
    return SideProgress(topic=version.topic, lag=total_lag(partitions), partitions=partitions)
