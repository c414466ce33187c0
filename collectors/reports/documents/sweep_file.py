"""What the files of a sweep hold: the file of its trials, or what `sweep --json` printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from collectors.reports.documents.json_values import Values, knob_key, knob_text, number, part, parts, text_of, texts
from collectors.reports.documents.open_loop import OpenCurve, read_open_loop
from engine.events import Event
from engine.isolation.events import RecordedIsolation, recorded_measurements
from engine.isolation.study import study_document as isolation_document
from engine.rate_search.document import open_loop
from engine.rate_search.events import RecordedRates
from engine.rate_search.runner import RateResult, recorded_result
from engine.replacing import replace
from engine.sizing.measured import DEPTH, DISKS, MeasuredCurve
from engine.sizing.need import Need
from engine.sizing.outcome import SizedSweep, sizings_of
from engine.sizing.size import Sizing
from engine.study.trial_file import read_trials
from engine.sweep.document import read_trial
from engine.sweep.events import RecordedSweep
from engine.sweep.knee import Answer, answer
from engine.sweep.limit import Limit
from engine.sweep.presets.outcome import outcome_document
from engine.sweep.presets.recorded import recorded_study, studies
from engine.sweep.runner import SweepResult
from engine.sweep.trial import TRIALS, Trial


class SweptCurve(Struct, frozen=True):
    """Trials that differ in load alone."""

    name: str
    trials: tuple[Trial, ...]
    answer: Answer


class Swept(Struct, frozen=True):
    """What either kind of file holds."""

    load: str
    """Key of the knob that is the load; "load" where the file does not name it, empty if none varied."""
    curves: tuple[SweptCurve, ...]
    notes: tuple[str, ...]
    targets: tuple[str, ...] = ()
    host: Values = field(default_factory=dict)
    """Facts of the host, as in the document; empty where the file has none."""
    findings: Values = field(default_factory=dict)
    """The document where it has findings."""
    open_loop: tuple[OpenCurve, ...] = ()
    study: Values = field(default_factory=dict)
    """The document of a preset where it is one; then nothing else is set."""
    need: Need | None = None
    """What the sweep was made for, where it is known."""
    sizings: tuple[Sizing, ...] = ()
    """The answer to it."""


def swept_of(result: SweepResult) -> Swept:
    """Describe what was just measured."""
    curves = tuple(SweptCurve(each.curve.name, each.trials, each.answer) for each in result.curves if each.trials)
    done = sum(len(curve.trials) for curve in curves)
    missing = () if result.is_complete else (f"not complete: {result.ended}; {done} measurements were made",)
    return Swept(
        "" if result.plan.load is None else result.plan.load.knob.key,
        curves,
        (*missing, *result.troubles),
    )


def swept_of_need(sized: SizedSweep) -> Swept:
    """Describe what was just measured for a need."""
    return replace(swept_of(sized.result), need=sized.need, sizings=sized.sizings)


def swept_of_rates(result: RateResult) -> Swept:
    """Describe an open loop that was just measured."""
    done = sum(len(curve.trials) for curve in result.curves)
    missing = () if result.is_complete else (f"not complete: {result.ended}; {done} trials were made",)
    return Swept("", (), (*missing, *result.troubles), open_loop=read_open_loop({"open_loop": open_loop(result)}))


def read_trial_file(path: Path) -> Swept:
    """Read a file of trials; it names no knobs.

    Raises:
        LunscopeError: it cannot be read.
    """
    found = read_trials(path, TRIALS)
    done = found.trials
    numbers = sorted({curve for curve, _ in done})
    curves = []
    for index in numbers:
        trials = tuple(trial for curve, trial in done if curve == index)
        curves.append(SweptCurve(f"curve {index}" if len(numbers) > 1 else "", trials, answer(trials)))
    note = "The file of trials names neither the knobs nor the targets; the document of sweep --json does"
    return Swept("load", tuple(curves), (note,), host=found.host or {})


def read_recorded_sweeps(events: Sequence[Event]) -> list[Swept]:
    """Read the sweeps, studies and open loops of a recording, in their order, without those that measured nothing.

    An open loop belongs to the closed one before it.
    """
    swept, closed = list[Swept](), list[RecordedSweep]()
    for found in recorded_measurements(events):
        if isinstance(found, RecordedSweep):
            closed.append(found)
            continue
        swept += _closed_loops(closed)
        closed.clear()
        if isinstance(found, RecordedIsolation):
            swept += _isolation(found)
        else:
            _add_rates(swept, found)
    return [*swept, *_closed_loops(closed)]


def _closed_loops(sweeps: Sequence[RecordedSweep]) -> Iterator[Swept]:
    for parts_of_study in studies(sweeps):
        study = recorded_study(parts_of_study)
        if study is not None:
            yield Swept("", (), (), study=outcome_document(study))
        else:
            yield from (_read_recorded(each) for each in parts_of_study if each.points.done)


def _isolation(found: RecordedIsolation) -> Iterator[Swept]:
    if found.points.done:
        study = found.study if found.ended is not None else replace(found.study, ended="it went on")
        yield Swept("", (), (), study=isolation_document(study))


def _add_rates(swept: list[Swept], found: RecordedRates) -> None:
    curves = read_open_loop({"open_loop": open_loop(recorded_result(found))})
    if not curves:
        return
    notes = () if found.ended == "complete" else (f"open loop not complete: {found.ended or 'it went on'}",)
    if swept and not swept[-1].study and not swept[-1].open_loop:
        swept[-1] = replace(swept[-1], notes=(*swept[-1].notes, *notes), open_loop=curves)
    else:
        swept.append(Swept("", (), notes, open_loop=curves))


def _read_recorded(found: RecordedSweep) -> Swept:
    plan, limits = found.plan, found.plan.limits
    curves = tuple(
        SweptCurve(curve.name, trials, answer(trials, limits))
        for curve, trials in zip(plan.curves, found.points.trials, strict=True)
        if trials
    )
    notes = () if found.ended == "complete" else (f"not complete: {found.ended or 'it went on'}",)
    left_out = (f"{plan.point_name(each.point)}: {each.words}" for each in found.points.left_out)
    return Swept("" if plan.load is None else plan.load.knob.key, curves, (*notes, *left_out))


def read_sweep_document(sweep: Values) -> Swept:
    """Read what `sweep --json` printed; answers are computed again from its trials.

    Raises:
        UsageError: it has a limit or a need that this version does not know.
    """
    limits = tuple(map(Limit.parse, texts(sweep, "limits")))
    curves = []
    for curve in parts(sweep, "curves"):
        trials = tuple(trial for each in parts(curve, "trials") if (trial := read_trial(each)) is not None)
        name = " ".join(f"{knob_key(knob)}={knob_text(value)}" for knob, value in part(curve, "knobs").items())
        curves.append(SweptCurve(name, trials, answer(trials, limits)))
    notes = () if sweep.get("complete") is True else (f"not complete: {text_of(sweep.get('ended'))}",)
    need = Need.parse(text_of(part(sweep, "sizing").get("need"))) if part(sweep, "sizing") else None
    load = "" if sweep.get("load") is None else knob_key(text_of(sweep.get("load")))
    return Swept(
        load,
        tuple(curves),
        (*notes, *texts(sweep, "troubles")),
        texts(sweep, "targets"),
        part(sweep, "host"),
        sweep,
        read_open_loop(sweep),
        need=need,
        sizings=() if need is None else sizings_of(curves_of_document(sweep), need),
    )


def curves_of_document(sweep: Values) -> Iterator[MeasuredCurve]:
    """Take the curves of a document by number of disks and queue depth."""
    load = sweep.get("load")
    for curve in parts(sweep, "curves"):
        knobs = part(curve, "knobs")
        texts = {knob: f"{knob_key(knob)}={knob_text(value)}" for knob, value in knobs.items()}
        sizes = {knob: number(knobs, knob) for knob in (DISKS, DEPTH) if knob in knobs}
        trials = tuple(trial for each in parts(curve, "trials") if (trial := read_trial(each)) is not None)
        yield MeasuredCurve({**texts, **sizes}, load if isinstance(load, str) else "", trials)
