"""Documents of runs and sweeps: their figures, their answer, and files that hold something else."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collectors.reports.documents.averages import DocumentOptions
from collectors.reports.documents.files import document_of
from collectors.reports.formats.html import html_lines
from collectors.reports.formats.md import markdown_lines
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.study.decoded import encoded
from engine.sweep.axes import parse_axis
from engine.sweep.document import sweep_document
from engine.sweep.events import begin_event, end_event, trial_event
from engine.sweep.knee import answer
from engine.sweep.limit import Limit
from engine.sweep.plan import make_plan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.trial import TRIALS
from tests.session_samples import Machine
from tests.unit.documents.parsed import Page
from tests.unit.sweep.queue_model import ModelDevice, bend, sweep

GOLDEN = Path(__file__).parents[1] / "golden" / "run.json"
LIMITS = (Limit.parse("mean<=750us"), Limit.parse("p99<=1us"))


def _page(path: Path) -> Page:
    return Page("\n".join(html_lines(document_of(path, DocumentOptions()))))


def _result(*axes: str) -> SweepResult:
    plan = make_plan(JobSpec(), tuple(map(parse_axis, axes)), LIMITS)
    curves = []
    for each in plan.curves:
        device = ModelDevice(bend(24), 1, noise=0.02)
        sweep(device, each.search.loads)
        curves.append(CurveResult(each, tuple(device.trials), answer(device.trials, LIMITS)))
    return SweepResult(plan, tuple(curves), "complete", ("disk b: its I/Os failed",), 90.0)


@pytest.fixture
def swept(tmp_path: Path) -> Callable[..., tuple[SweepResult, Path]]:
    def write(*axes: str) -> tuple[SweepResult, Path]:
        result, path = _result(*axes), tmp_path / "sweep.json"
        path.write_text(json.dumps(sweep_document(result, ("disk a", "<disk> b"))))
        return result, path

    return write


def _trial_lines(result: SweepResult) -> str:
    head = {"schema": TRIALS.schema, "sweep": "0"}
    trials = ({"curve": curve.curve.index, **encoded(trial)} for curve in result.curves for trial in curve.trials)
    return "".join(f"{json.dumps(line)}\n" for line in (head, *trials))


def test_run_has_its_figures() -> None:
    document = json.loads(GOLDEN.read_text())
    page, total = _page(GOLDEN), document["total"]
    row = next(row for row in page.rows if row and row[0] == "total")
    assert row[1] == f"{total['ios']:,}"
    assert row[2] == f"{total['iops']:,.1f}"
    assert row[4] == f"{total['latency_us']['mean'] / 1000:,.3f}"
    assert row[8] == ("-" if (p999 := total["latency_us"]["p99_9"]) is None else f"{p999 / 1000:,.3f}")
    for text in (*document["notices"], *(badge["text"] for badge in document["badges"]), *document["targets"]):
        assert text in page.text


def test_run_that_failed_says_why(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(json.loads(GOLDEN.read_text()) | {"failure": "40 IOPS over the last 1 s, below <100>"}))
    assert "failed: 40 IOPS over the last 1 s, below <100>" in _page(path).text


def test_loads_at_the_same_time_have_a_row_each(tmp_path: Path) -> None:
    alone, path = json.loads(GOLDEN.read_text()), tmp_path / "run.json"
    other = alone | {"job": alone["job"] | {"access": "random", "knobs": alone["job"]["knobs"] | {"queue_depth": 99}}}
    common = alone["job"] | {"access": None, "knobs": alone["job"]["knobs"] | {"queue_depth": None}}
    loads = [alone | {"name": "victim"}, other | {"name": "aggressor"}]
    path.write_text(json.dumps(alone | {"job": common, "loads": loads}))
    rows = {row[0]: row for row in _page(path).rows if row}
    assert rows["victim"][2] == "qd=8, access=sequential"
    assert rows["aggressor"][2] == "qd=99, access=random"
    assert rows["victim"][3] == f"{alone['total']['ios']:,}"


def _values(values: Any, where: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(values, dict | list):
        keys = values.keys() if isinstance(values, dict) else range(len(values))
        return [where, *(found for key in keys for found in _values(values[key], (*where, key)))]
    return [where]


@pytest.mark.slow
def test_damaged_documents_are_described_as_far_as_they_go(
    tmp_path: Path, swept: Callable[..., tuple[SweepResult, Path]]
) -> None:
    odd: tuple[Any, ...] = (None, "<i>", -1, 1e308, 10**400, [], {}, [[]], True, {"a": {"b": []}})
    chosen = random.Random(1)
    for source in (GOLDEN, swept("qd=1,2,4,8")[1]):
        text = source.read_text()
        wheres = [where for where in _values(json.loads(text)) if where and where != ("schema",)]
        for where in chosen.sample(wheres, min(120, len(wheres))):
            document = json.loads(text)
            inside = document
            for key in where[:-1]:
                inside = inside[key]
            inside[where[-1]] = chosen.choice(odd)
            path = tmp_path / "odd.json"
            path.write_text(json.dumps(document))
            with contextlib.suppress(LunscopeError):
                assert "<i>" not in "".join(html_lines(document_of(path, DocumentOptions())))


def test_sweep_gives_the_answer_and_all_points(swept: Callable[..., tuple[SweepResult, Path]]) -> None:
    result, path = swept("qd=1..256", "bs=4k,64k")
    page, found = _page(path), result.curves[0].answer
    assert found.balance is not None
    assert f"Best balance at qd={found.balance.whole_load}" in page.text
    assert f"between {found.balance.low:.0f} and {found.balance.high:.0f}" in page.text
    assert ["best with p99<=1us", "-", "-", "-", "-", "no load keeps it"] in page.rows
    loads = {f"{trial.load:g}" for trial in result.curves[0].trials}
    assert loads <= {row[0] for row in page.rows if row}
    assert "bs=4k" in page.text
    assert "bs=64k" in page.text
    assert "disk b: its I/Os failed" in page.text
    assert {"rect", "circle"} <= page.tags


def test_trials_give_the_same_points_as_the_document(
    tmp_path: Path, swept: Callable[..., tuple[SweepResult, Path]]
) -> None:
    result, path = swept("qd=1..64")
    trials = tmp_path / "trials.jsonl"
    trials.write_text(_trial_lines(result))
    of_document, of_trials = _page(path), _page(trials)
    points = [row for row in of_document.rows if len(row) == 11 and row[0].isdigit()]
    assert points
    assert [row for row in of_trials.rows if len(row) == 11 and row[0].isdigit()] == points
    assert "names neither the knobs nor the targets" in of_trials.text


def test_recorded_sweep_is_in_the_document_of_its_recording(tmp_path: Path) -> None:
    result, machine, path = _result("qd=1..64"), Machine(), tmp_path / "swept.luns"
    curve = result.curves[0]
    noted = [begin_event(result.plan), *(trial_event(result.plan, 0, trial) for trial in curve.trials)]
    with SessionWriter(path) as writer:
        for text, data in [*noted, end_event("stopped")]:
            sample = machine.sample()
            event = Event(EventKind.LOAD, text, sample.time_ns, sample.monotonic_ns, dict(data))
            writer.write(replace(sample, events=(event,)))
    page, found = _page(path), curve.answer
    assert found.balance is not None
    assert f"Best balance at qd={found.balance.whole_load}" in page.text
    assert "not complete: stopped" in page.text
    assert "Hottest disk over the recording" in page.text


def test_devices_under_a_run_are_written_as_in_text(tmp_path: Path) -> None:
    document = json.loads(GOLDEN.read_text())
    tiers = {"queue_ms": "exact", "service_ms": "sampled", "await_ms": "kernel", "busy_pct": "kernel", "iops": "kernel"}
    figures = {"queue_ms": 0.25, "service_ms": 12.5, "await_ms": 12.75, "busy_pct": 40, "in_flight": None, "iops": 1e5}
    disk = {"name": "dm-0", "label": "mpatha", **figures, "tiers": tiers, "targets": ["/dev/<x>"]}
    document["devices"] = {"elapsed_s": 3.0, "samples": 4, "tier": "exact", "disks": [disk], "paths": [], "hbas": None}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    expected = ["dm-0 mpatha", "0.250", "12.50~", "12.75:", "40.0:", "-", "100000", "-", "under /dev/<x>"]
    assert expected in _page(path).rows


def test_sweep_without_a_load_is_one_table(swept: Callable[..., tuple[SweepResult, Path]]) -> None:
    result, path = swept("bs=4k,8k,64k")
    rows = [row for row in _page(path).rows if row[0]]
    assert [row[0] for row in rows] == ["bs=4k", "bs=8k", "bs=64k"]
    assert len(result.curves) == 3


def test_stalled_curves_without_throughput_are_drawn(tmp_path: Path) -> None:
    result = _result("qd=1,2,4,8")
    dead = tuple(replace(trial, iops=0.0, latency_ns=0.0, latencies_ns={}) for trial in result.curves[0].trials)
    path = tmp_path / "dead.jsonl"
    path.write_text(_trial_lines(replace(result, curves=(replace(result.curves[0], trials=dead),))))
    assert "unknown" in _page(path).text


def test_markdown_holds_the_same_answer(swept: Callable[..., tuple[SweepResult, Path]]) -> None:
    result, path = swept("qd=1..256")
    text = "\n".join(markdown_lines(document_of(path, DocumentOptions())))
    balance = result.curves[0].answer.balance
    assert balance is not None
    assert f"**knee: throughput rises to the knee and stays. Best balance at qd={balance.whole_load}" in text
    assert "\\<disk\\> b" in text
    assert "<svg" not in text


@pytest.mark.parametrize("text", ["{", "{}", '{"schema": "lunscope.scan/1"}', '{"schema": 5}', "", "[1]", "\0"])
def test_other_files_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(LunscopeError) as refused:
        document_of(path, DocumentOptions())
    assert "\n" not in str(refused.value)
    assert "other" in str(refused.value)
