"""A need asked of documents, recordings and reports, and what a sweep plans for one."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from collectors.advice.measured import answer_sections
from collectors.session.writer import SessionWriter
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, TargetSpec
from engine.replacing import replace
from engine.sizing.need import Need
from engine.sizing.outcome import SizedSweep
from engine.sweep.axes import parse_axis
from engine.sweep.document import sweep_document
from engine.sweep.events import begin_event, trial_event
from engine.sweep.knee import answer
from engine.sweep.plan import SweepPlan, make_plan
from engine.sweep.runner import CurveResult, SweepResult
from tests.session_samples import Machine
from tests.unit.documents.printed import shown, unwrapped
from tests.unit.sizing.disk_law import DiskLaw
from tui.cli import run_cli
from tui.headless.sizing import plan_need, sized, sizing_axes
from tui.screens.sweep.preset_group import study_lines
from tui.sweep.series import SessionGroup

TARGETS = ("/dev/a", "/dev/b", "/dev/c", "/dev/d")
LAW = DiskLaw()
ASK = ("sweep", "--need", "90k IOPS, p99<2.6ms")
ANSWER = "4 disks at qd=12: "


@functools.cache
def _measured(*axes: str) -> SweepResult:
    """Measure a plan: the depth is the load where it varies, else 16."""
    job = JobSpec(targets=tuple(map(TargetSpec, TARGETS)))
    job = replace(job, knobs=replace(job.knobs, queue_depth=16, stripe_width=4))
    plan = make_plan(job, tuple(map(parse_axis, axes)))
    curves = []
    for curve in plan.curves:
        knobs = [plan.knobs_at(curve, load) for load in curve.search.loads for _ in range(2)]
        trials = tuple(
            replace(LAW.trial(each.stripe_width, each.queue_depth, "ladder", start_s=2.0 * at), load=float(load))
            for at, (each, load) in enumerate(
                zip(knobs, [n for n in curve.search.loads for _ in range(2)], strict=True)
            )
        )
        curves.append(CurveResult(curve, trials, answer(trials)))
    return SweepResult(plan, tuple(curves), "complete", (), 90.0)


def _sweep() -> SweepResult:
    return _measured("qd=1,2,4,8,12,16,32", "stripe_width=1,2,4")


def _document(result: SweepResult) -> dict[str, Any]:
    return sweep_document(result, TARGETS)


def _preset(result: SweepResult) -> dict[str, Any]:
    parts = [{"name": name, "sweep": _document(result)} for name in ("", "controllers")]
    return {"schema": "lunscope.preset/1", "parts": parts}


def _recording(path: Path, result: SweepResult) -> Path:
    plan: SweepPlan = result.plan
    said = [begin_event(plan), *(trial_event(plan, c.curve.index, trial) for c in result.curves for trial in c.trials)]
    events = [Event.now(EventKind.LOAD, text, **data) for text, data in said]
    samples = Machine()
    with SessionWriter(path) as writer:
        writer.write(samples.sample())
        writer.write(samples.sample(*events))
    return path


def _write(make: Callable[[SweepResult], dict[str, Any]], path: Path, result: SweepResult) -> Path:
    path.write_text(json.dumps(make(result)))
    return path


FILES: dict[str, Callable[[Path, SweepResult], Path]] = {
    "document": functools.partial(_write, _document),
    "preset": functools.partial(_write, _preset),
    "recording": _recording,
}


@pytest.mark.parametrize("kind", FILES)
def test_any_file_of_a_sweep_answers(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = FILES[kind](tmp_path / "file", _sweep())
    assert run_cli([*ASK, "--from", str(path)]) == 0
    text = unwrapped(capsys.readouterr().out)
    assert text.startswith("[Sizing: 90k IOPS, p99<=2.6ms]")
    assert ANSWER in text
    assert run_cli([*ASK, "--from", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "lunscope.sizing/1"
    assert [load["load"] for load in document["loads"]] == ["", "controllers"][: 1 + (kind == "preset")]
    for load in document["loads"]:
        assert (load["verdict"], load["size"]["disks"], load["size"]["queue_depth"]) == ("found", 4, 12)
        assert [row["disks"] for row in load["measured"]] == [1, 2, 4]


def test_other_axes_have_an_answer_each_and_the_load_may_be_the_disks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _write(_document, tmp_path / "blocks", _measured("qd=1,2,4,8,12,16,32", "stripe_width=2,4", "bs=4k,8k"))
    assert run_cli([*ASK, "--from", str(path)]) == 0
    text = unwrapped(capsys.readouterr().out)
    assert f"bs=4k: {ANSWER}" in text
    assert f"bs=8k: {ANSWER}" in text
    path = _write(_document, tmp_path / "disks", _measured("stripe_width=1,2,3,4"))
    assert run_cli([*ASK, "--from", str(path), "--json"]) == 0
    (load,) = json.loads(capsys.readouterr().out)["loads"]
    assert (load["size"]["disks"], load["size"]["queue_depth"]) == (4, 16)


def test_a_file_of_trials_is_refused_with_what_to_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trials"
    path.write_text('{"schema": "lunscope.sweep-trials/1", "sweep": "x"}\n')
    assert run_cli([*ASK, "--from", str(path)]) == 2
    assert "names no knobs: give what sweep --json printed" in capsys.readouterr().err
    path.write_text('{"schema": "lunscope.run/1"}\n')
    assert run_cli([*ASK, "--from", str(path)]) == 2
    assert "neither a recording nor a document of sweep --json" in capsys.readouterr().err


@pytest.mark.parametrize("depth", [-1, 0, 1e18, 1e300, None, "x"])
def test_hostile_values_are_left_out(depth: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _document(_measured("stripe_width=1,2,3,4"))
    for curve in document["curves"]:
        curve["knobs"]["queue_depth"] = depth
        curve["trials"][0] |= {"load": depth, "in_flight": depth}
    path = tmp_path / "hostile"
    path.write_text(json.dumps(document))
    code = run_cli([*ASK, "--from", str(path)])
    said = capsys.readouterr()
    assert (code, "Traceback" in said.err) in {(0, False), (2, False)}


def test_the_report_of_a_sweep_for_a_need_has_the_answer_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = SizedSweep(_sweep(), Need.parse(ASK[2]))
    printed = shown(answer_sections([made]))
    assert ANSWER in unwrapped(printed)
    path = _write(lambda result: {**_document(result), "sizing": {"need": ASK[2]}}, tmp_path / "sized", made.result)
    assert run_cli(["report", "--from", str(path), "--text", "-"]) == 0
    assert ANSWER in unwrapped(capsys.readouterr().out)
    drawn = tmp_path / "sized.html"
    assert run_cli(["report", "--from", str(path), "--html", str(drawn)]) == 0
    assert all(f"</i>{name} " in drawn.read_text() for name in ("measured", "found: 4 disks", "need"))
    path = _write(lambda result: {**_document(result), "sizing": {"need": "much"}}, tmp_path / "odd", made.result)
    assert run_cli(["report", "--from", str(path), "--text", "-"]) == 2
    assert "neither a throughput nor a limit" in capsys.readouterr().err


def test_a_need_is_measured_over_disks_and_depths() -> None:
    job, need = JobSpec(targets=tuple(map(TargetSpec, TARGETS))), Need.parse("1k IOPS, p99.9<5ms")
    plan = plan_need(job, sizing_axes((), job, {}), need)
    assert [axis.text for axis in plan.axes] == ["qd=1..128", "stripe_width=1,2,4"]
    assert plan.rule.percent == 99.9
    given = (parse_axis("qd=2,4"), parse_axis("bs=4k,8k"))
    assert [axis.knob.key for axis in sizing_axes(given, job, {"stripe_width": 2})] == ["qd", "bs"]
    alone = replace(job, targets=job.targets[:1])
    assert [axis.text for axis in sizing_axes((), alone, {"qd": 8})] == []


def test_the_screen_has_the_answer_beside_the_curves() -> None:
    result = _sweep()
    group = SimpleNamespace(order=SimpleNamespace(whole=sized(Need.parse(ASK[2]))), results=[result])
    text = unwrapped("\n".join(study_lines(cast(SessionGroup, group), TARGETS)))
    assert text.startswith("[Sizing: 90k IOPS, p99<=2.6ms]")
    assert ANSWER in text
    assert "[Sweep" not in text
