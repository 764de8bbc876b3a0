"""`emits`: whether each result is written once, or rows replace earlier rows of their key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from twinstream.spec.file.checks import KEYS, Check, CheckGate, ClosedWindows, Keys, Settled, Unit
from twinstream.spec.file.orders import TAG
from twinstream.spec.file.values import FieldPath, Flag, Strict, given, problem

Fields = Annotated[list[FieldPath], Field(min_length=1)]


class Watermark(Strict):
    """The watermark of a version settles the keys of windows that it has passed."""

    watermark: FieldPath
    """The field with the end of the window that a row stands for."""


def _settled_by(value: Any) -> Any:
    if value in ("input", "barrier") or isinstance(value, (Watermark, dict)):
        return value
    if value == "watermark":
        raise problem("needs the field with the end of the window: write `{watermark: FIELD}`")
    raise problem(f"must be `input`, `barrier` or `{{watermark: FIELD}}`, but {given(value)} was given")


def _form(value: Any) -> str:
    return TAG + ("name" if isinstance(value, str) else "mapping")


SettledBy = Annotated[
    Annotated[Literal["input", "barrier"], Tag(TAG + "name")] | Annotated[Watermark, Tag(TAG + "mapping")],
    Discriminator(_form),
]
_Settled = Annotated[SettledBy, BeforeValidator(_settled_by, json_schema_input_type=SettledBy)]


class Intermediate(Strict):
    """What rows before the last one of a key, and behind it, must be like in each topic by itself."""

    monotone: Annotated[list[FieldPath], Field(min_length=1)] | None = None
    """Fields that never get smaller from row to row of a key, until the key is deleted."""
    final_after_settled: Flag = False
    """Whether a row for a key that the `watermark` or a `barrier` has settled is a violation: for a barrier
    one with another value, for the watermark any."""
    gate: CheckGate = "fail"
    """What the gate is if the candidate violates it. If only the reference does, it is undecided."""
    keys: Keys = KEYS
    """How many keys are remembered, the latest ones."""

    @model_validator(mode="after")
    def _some(self) -> Intermediate:
        if self.monotone is None and not self.final_after_settled:
            raise ValueError("asks for nothing; write `monotone: [FIELD, …]` or `final_after_settled: true`")
        return self


class Upsert(Strict):
    """A row replaces the row of its key, and a record without a value deletes it."""

    key: Fields
    """The fields that name the thing a row is about."""
    settled_by: _Settled
    """What tells that a row is the last one of its key: the `input` that both sides have consumed, the
    `watermark` and a field, or a `barrier` of the order."""
    intermediate: Intermediate | None = None
    """What is asked of the rows that are not the last one of their key; without it nothing."""


class Retract(Strict):
    """A row gives the lifetime of an event; a later row of its id changes it. An empty one takes it back."""

    id: FieldPath
    """The field that names the event."""
    valid_from: FieldPath
    """The field with the beginning of its lifetime."""
    valid_to: FieldPath
    """The field with the end of its lifetime; if it equals the beginning, the event is taken back."""
    settled_by: _Settled
    """What tells that a row is the last one of its id, as for `upsert`."""

    misplaced: ClassVar[Mapping[str, str]] = {
        "intermediate": "belongs to `upsert` and `complete`: a row of `retract` changes a lifetime, and any "
        "later one may take it back; leave it out"
    }


class Complete(Strict):
    """The rows of a batch are the whole table, and a key that is not among them is not in it."""

    key: Fields
    """The fields that name the thing a row is about."""
    settled_by: Literal["input"]
    """Tables of both sides are compared when both versions have consumed the same `input`."""
    intermediate: Intermediate | None = None
    """What is asked of the tables before the last one; without it nothing."""


class Folding(Strict):
    """How rows replace each other; exactly one form."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    upsert: Upsert | None = None
    """Rows are upserts: output in update mode."""
    retract: Retract | None = None
    """Rows are inserts and changes of lifetime."""
    complete: Complete | None = None
    """The rows of a batch replace all others: output in complete mode."""

    @property
    def form(self) -> Upsert | Retract | Complete:
        """The one form that is given."""
        form = self.upsert or self.retract or self.complete
        assert form is not None, "one is given"
        return form

    @property
    def name(self) -> Literal["upsert", "retract", "complete"]:
        """The key of that form."""
        if self.complete is not None:
            return "complete"
        return "retract" if self.upsert is None else "upsert"

    @property
    def tells_batches(self) -> bool:
        """Whether the batch that wrote a row must be told by its header."""
        return self.complete is not None

    @property
    def key(self) -> list[str]:
        """The fields that name the thing a row is about."""
        return [self.form.id] if isinstance(self.form, Retract) else self.form.key

    @property
    def intermediate(self) -> Intermediate | None:
        """What is asked of the rows that are not the last one of their key."""
        return None if isinstance(self.form, Retract) else self.form.intermediate

    @property
    def window_end(self) -> str | None:
        """The field with the end of a row's window, where the watermark settles rows."""
        settled_by = self.form.settled_by
        return settled_by.watermark if isinstance(settled_by, Watermark) else None

    @property
    def settled_by(self) -> Literal["input", "barrier", "watermark"]:
        """What settles rows, by name."""
        settled_by = self.form.settled_by
        return "watermark" if isinstance(settled_by, Watermark) else settled_by

    def checks(self, kinds: Sequence[str], unit: Unit) -> Iterator[Check]:
        """What `intermediate` asks of rows of these kinds, as checks; `unit` is that of `window_end`."""
        asked = self.intermediate
        if asked is None:
            return
        same: dict[str, Any] = {"kinds": list(kinds), "gate": asked.gate, "keys": asked.keys}
        for field in asked.monotone or ():
            name = f"intermediate.monotone.{field}"
            yield Check.model_construct(id=name, ascending=field, per=self.key, **same)
        if asked.final_after_settled:
            closed = None if self.window_end is None else ClosedWindows(end=self.window_end, unit=unit)
            name = "intermediate.final_after_settled"
            yield Settled.model_construct(id=name, closed_windows=closed, **same)


_FORMS = "{upsert: {key: [FIELD, …], settled_by: input}}"


def declared(emits: Any) -> Any:
    """Refuse what is no mode of output, by what was meant."""
    if emits == "append" or isinstance(emits, Folding):
        return emits
    if not isinstance(emits, dict):
        raise problem(
            f"must be `append`, or say which rows replace each other, like `{_FORMS}`, but {given(emits)} "
            "was given"
        )
    if len(forms := [name for name in Folding.model_fields if name in emits]) > 1:
        raise problem(f"holds `{forms[0]}` and `{forms[1]}`, which are two forms; keep one")
    if not emits:
        raise problem(f"names no form; write `append`, or one like `{_FORMS}`")
    if forms and emits[forms[0]] is None:
        raise problem("is empty; say what names a row and what settles it", forms[0])
    return emits


Emits = Annotated[
    Annotated[Literal["append"], Tag(TAG + "name")] | Annotated[Folding, Tag(TAG + "mapping")],
    Discriminator(_form),
]
