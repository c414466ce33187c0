"""Studies without a screen: prepared, measured trial by trial, printed, and ended cleanly by a signal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import click
from msgspec import Struct

from collectors.advice.finding import findings_document
from collectors.advice.measured import Answer, answer_findings, answer_sections
from collectors.advice.point_watch import DeviceWatch
from collectors.model import Source
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError
from engine.isolation.study import IsolationStudy, study_document
from engine.job.spec import JobSpec, Permissions
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.runner import RateResult
from engine.running.control import LoadControl
from engine.sizing.document import sizing_document
from engine.sizing.outcome import SizedSweep
from engine.strict_json import dump_json
from engine.study.order import NextStudy, Study, StudyOrder
from engine.sweep.document import Document, sweep_document
from engine.sweep.presets.command import run_command
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.runner import SweepResult
from tui.headless.driven_run import DrivenRun
from tui.headless.leaving import leave
from tui.headless.monitor import READING_S, Monitor
from tui.headless.shown import print_sections
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import exit_code
from tui.options.watching import Watching, open_source, recording_exit
from tui.process.standard_streams import say, show_progress

_LAST_SAMPLE_S = 2.0
_ENDING_S = 2.0
"""How long a measurement may take to end after a signal."""


class Sampling(Struct, frozen=True):
    """The sampling of this host beside a load, and what it shows of each point."""

    monitor: Monitor
    watch: DeviceWatch

    @classmethod
    def of(cls, source: Source, control: LoadControl, watching: Watching) -> Self:
        """Sample a source for the points of a load; the monitor is not started."""
        watch = DeviceWatch(lambda: control.status, watching.sysfs)
        monitor = Monitor(source, watch.observe)
        watch.attach(monitor.request_sample)
        return cls(monitor, watch)


class Bench(Struct, frozen=True):
    """What loads are measured with, one after the other."""

    control: LoadControl
    sampling: Sampling
    signals: EndingSignals


def measure_order(order: StudyOrder, watching: Watching, *, as_json: bool) -> int:
    """Measure studies while this host is sampled, until all are done or a signal comes, and print what they say.

    Returns the exit code; a load that cannot be prepared or started is said in one line.
    """
    control, results = LoadControl(), list[Any]()
    with EndingSignals() as signals:
        source, recording = open_source(watching, control)
        bench = Bench(control, Sampling.of(source, control, watching), signals)
        monitor = bench.sampling.monitor
        try:
            monitor.start()
            code = _measure_all(order, bench, results)
            if recording is not None:
                monitor.wait_for_next(min(watching.interval_s, _LAST_SAMPLE_S) + READING_S)
        except LunscopeError as error:
            say(str(error))
            code = error.exit_code
        finally:
            monitor.close()
        print_answers(order.answered(results, control.status.targets), control, bench.sampling.watch, as_json=as_json)
        code = code or int(not order.is_complete(results))
        if control.outstanding:
            leave(code or 1)
        return recording_exit(recording, code)


def _measure_all(order: StudyOrder, bench: Bench, results: list[Any]) -> int:
    """Measure studies one after the other; returns the exit code of their loads."""
    code, waiting = 0, [step.command for step in order.following if step.command]
    begun = list[str]()
    try:
        for step in (NextStudy(lambda _results: order.first), *order.following):
            if step.command:
                begun.append(waiting.pop(0))
                try:
                    _run_between(step.command, bench.signals)
                except StoppedError:
                    return 128 + (bench.signals.wait(0) or 0)
            code = code or _measure(step.make(results), order, bench, results)
            is_complete = bool(results) and results[-1].is_complete
            if not is_complete or bench.signals.wait(0) is not None or bench.control.outstanding:
                break
    finally:
        if begun:
            for command in waiting:
                say(f"{command!r} was not run: run it yourself, where it undoes {begun[-1]!r}")
    return code


def _measure(study: Study, order: StudyOrder, bench: Bench, results: list[Any]) -> int:
    run = MeasuredRun(bench, study)
    done = None if order.whole is None else run.runner.result_if_done()
    if done is not None:
        results.append(done)
        return 0
    try:
        load = run.drive(study.plan.armed, order.permissions)
    finally:
        results.extend([] if run.result is None else [run.result])
    failure = run.runner.failure
    if failure is not None:
        say(str(failure))
    code = exit_code(load, bench.control.status.state, bench.signals) or int(bench.control.failed_before > 0)
    return code or (0 if failure is None else failure.exit_code)


def _run_between(command: str, signals: EndingSignals) -> None:
    say(f"runs {command}")
    run_command(command, lambda seconds: signals.wait(seconds) is not None, sys.stderr.fileno())


class MeasuredRun(DrivenRun):
    """Takes the load of a study from its preparation to the last trial."""

    REPORT_S: ClassVar[float] = 0.5

    def __init__(self, bench: Bench, study: Study) -> None:
        super().__init__(bench.control, bench.signals)
        control, watch = bench.control, bench.sampling.watch
        self._watch = watch
        self._first, self._trials = study.plan.first, study.trials
        self.runner = study.over(control, self._keep, control.note_load, watch)
        self._trouble: LunscopeError | None = None
        self.result: Any = None
        """None if the load never began."""

    def _prepare(self, job: JobSpec, permissions: Permissions) -> None:
        self._do_unless_stopped(lambda: self._control.arm(job, permissions), "lunscope-arm")
        self._do_unless_stopped(lambda: self._control.turn(self._first), "lunscope-turn")
        self._do_unless_stopped(self._control.start, "lunscope-start")

    def _follow(self) -> None:
        under_way = BackgroundCall(self.runner.run, "lunscope-trials")
        show_progress(self._progress())
        self._follow_until(under_way.done.is_set)
        if not under_way.done.is_set():
            self.runner.stop()
            # A turn of the knobs may hang as long as the device does; the end of the load sees to that.
            under_way.done.wait(_ENDING_S)
        self.result = under_way.result() if under_way.done.is_set() else self.runner.result_so_far("stopped")
        if self._trouble is not None:
            raise self._trouble

    def _progress(self) -> str:
        return self.runner.progress_line

    def _keep(self, curve: int, trial: object) -> None:
        if self._trials is None:
            return
        try:
            self._trials.note_host(self._watch.host() or {})
            self._trials.append(curve, trial)
        except LunscopeError as error:
            self._trouble = error
            self.runner.stop()


def print_answers(answers: Sequence[Answer], control: LoadControl, watch: DeviceWatch, *, as_json: bool) -> None:
    """Print what was measured over a load; nothing where nothing was."""
    if not as_json:
        print_sections(answer_sections(answers))
        return
    document = answer_document(answers, control.status.targets, watch.host())
    if document is not None:
        click.echo(dump_json(document))


def answer_document(
    answers: Sequence[Answer], targets: tuple[str, ...], host: Mapping[str, Any] | None
) -> Document | None:
    """Write everything that was measured as JSON; None where nothing was."""
    found: Document = {"host": host}
    match answers:
        case [PresetOutcome() as outcome]:
            return {**outcome_document(outcome), **found}
        case [IsolationStudy(points=[_, *_]) as study]:
            return {**study_document(study), **found}
        case [SizedSweep() as sized]:
            document = sweep_document(sized.result, targets)
            document["sizing"] = sizing_document(sized.need, sized.sizings)
        case [SweepResult() as closed, *rest]:
            document = sweep_document(closed, targets)
            for each in rest:
                document["open_loop"] = open_loop(each) if isinstance(each, RateResult) else None
        case [RateResult() as rates]:
            document = rate_document(rates, targets)
        case _:
            return None
    return {**document, **found, "findings": findings_document(answer_findings(answers))}
