"""The measurements of a file by number of disks and queue depth: of a recording, of `sweep --json` or of a preset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from collectors.compare.run_side import is_document
from collectors.compare.sweep_side import is_trial_file
from collectors.reports.documents.json_values import part, parts, read_document, text_of
from collectors.reports.documents.sweep_file import curves_of_document
from collectors.session.reader import SessionReader
from engine.errors import UsageError
from engine.events import Event
from engine.isolation.events import recorded_measurements
from engine.replacing import replace
from engine.sizing.measured import MeasuredCurve, curves_of
from engine.sizing.need import Need
from engine.sizing.outcome import sizings_of
from engine.sizing.size import Sizing
from engine.sweep.events import RecordedSweep
from engine.sweep.presets.recorded import studies
from engine.text import safe_text


def sizings_of_file(path: Path, need: Need) -> tuple[Sizing, ...]:
    """Answer a need by what a file holds.

    Raises:
        UsageError: it holds no closed loop of a sweep.
        LunscopeError: it cannot be read.
    """
    found = sizings_of(_curves(path), need)
    if not found:
        raise UsageError(f"{safe_text(str(path))}: holds no measurement of a closed loop: give another file")
    return found


def _curves(path: Path) -> Iterable[MeasuredCurve]:
    shown = safe_text(str(path))
    if not is_document(path):
        with SessionReader(path) as reader:
            return tuple(_of_recording(reader.events()))
    if is_trial_file(path):
        raise UsageError(
            f"{shown}: a file of --trials names no knobs: give what sweep --json printed, or the recording"
        )
    values = read_document(path)
    schema = str(values.get("schema", ""))
    if schema.startswith("lunscope.sweep/"):
        return curves_of_document(values)
    if schema.startswith("lunscope.preset/"):
        named = ((text_of(each.get("name") or ""), part(each, "sweep")) for each in parts(values, "parts"))
        return (_in_part(curve, name) for name, sweep in named for curve in curves_of_document(sweep))
    raise UsageError(f"{shown}: neither a recording nor a document of sweep --json: give one of these")


def _of_recording(events: Sequence[Event]) -> Iterator[MeasuredCurve]:
    """Take the last sweep, or the parts of the last study."""
    closed = [each for each in recorded_measurements(events) if isinstance(each, RecordedSweep) and each.points.done]
    for sweep in studies(closed)[-1] if closed else ():
        yield from (_in_part(curve, sweep.plan.part) for curve in curves_of(sweep.plan, sweep.points.trials))


def _in_part(curve: MeasuredCurve, name: str) -> MeasuredCurve:
    return replace(curve, knobs={"part": name, **curve.knobs}) if name else curve
