"""Gives a comparison file another start: the one that a reset asks for."""

from __future__ import annotations

from twinstream.errors import SpecError
from twinstream.spec.file.model import Spec
from twinstream.spec.file.start import Start
from twinstream.spec.laws.laws import breaches


def begun_at(spec: Spec, start: Start) -> Spec:
    """The same comparison with this start. Raises SpecError where the file does not allow it."""
    declared = {name: getattr(spec, name) for name in Spec.model_fields}
    begun = Spec.model_validate({**declared, "start": start})
    for breach in breaches(begun):
        raise SpecError("the start", None, breach.key, breach.problem)
    if begun.whole != spec.whole or begun.reads_marks != spec.reads_marks:
        problem = "needs more of each record than is read for the comparison file: name this start there"
        raise SpecError("the start", None, "start", problem)
    return begun
