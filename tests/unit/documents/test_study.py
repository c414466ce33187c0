"""Studies in reports: of the document of a preset and of a recording, beside sweeps and open loops."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from collectors.reports.documents.averages import DocumentOptions
from collectors.reports.documents.content import Charts, DocumentTable, Paragraph
from collectors.reports.documents.files import document_of
from collectors.reports.documents.study import study_sections
from collectors.reports.documents.sweep import sweep_sections
from collectors.reports.documents.sweep_file import read_recorded_sweeps
from collectors.reports.formats.html import html_lines
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.rate_search.events import begin_event as rates_begin
from engine.rate_search.events import end_event as rates_end
from engine.rate_search.events import trial_event as rates_trial
from engine.replacing import replace
from engine.sweep.axes import parse_axis
from engine.sweep.plan import make_plan
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.presets.plans import plan_preset
from engine.sweep.presets.preset import HostSize
from engine.sweep.presets.registry import PRESETS
from engine.sweep.runner import SweepResult, SweepRunner
from tests.app.isolation_states import isolation_events
from tests.app.rate_states import searched_trials, step_plan
from tests.unit.documents.parsed import Page
from tests.unit.sweep.fake_load import FakeLoad
from tests.unit.sweep.queue_model import corner

JOB = JobSpec(targets=(TargetSpec("/dev/a"), TargetSpec("/dev/b")))
WRITABLE = Permissions(frozenset({"/dev/a", "/dev/b"}))


class _Log:
    """Events as a session keeps them."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def note(self, text: str, data: Mapping[str, Any]) -> None:
        self.events.append(Event.now(EventKind.LOAD, text, **data))


def _study(name: str, log: _Log, parts: int | None = None) -> PresetOutcome:
    plan = plan_preset(PRESETS[name], JOB, (), WRITABLE, host=HostSize(2, 1 << 34), point_s=1.0)
    results = list[SweepResult]()
    for _, part in plan.parts[:parts]:
        load = FakeLoad(lambda depth: 5000 * min(depth, 10))
        results.append(SweepRunner(part, load, clock=load.clock, note=log.note).run())
    return PresetOutcome(plan, tuple(results), ("/dev/a", "/dev/b"))


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "multipath"])
def test_document_of_a_preset_has_all_its_cells_and_the_published_ones(name: str, tmp_path: Path) -> None:
    outcome, path = _study(name, _Log()), tmp_path / "preset.json"
    document = outcome_document(outcome)
    path.write_text(json.dumps(document))
    page = Page("\n".join(html_lines(document_of(path, DocumentOptions()))))
    cells = {cell for row in page.rows for cell in row}
    for table in outcome.tables:
        assert all(column.title in page.text for column in table.columns)
        shown = {
            column.shown(cell) for row in table.rows for column, cell in zip(table.columns, row.cells, strict=True)
        }
        assert shown - {""} <= cells
        assert {cell for row in table.published for cell in row} <= cells
    assert f"on other hardware ({outcome.plan.preset.source})" in page.text
    older = {**document, "tables": [{**table, "columns": None} for table in document["tables"]]}  # type: ignore[attr-defined]
    path.write_text(json.dumps(older))
    assert len(Page("\n".join(html_lines(document_of(path, DocumentOptions())))).rows) == len(page.rows)


def test_preset_without_measurements_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "preset.json"
    path.write_text(json.dumps({"schema": "lunscope.preset/1", "preset": "dump", "tables": []}))
    with pytest.raises(UsageError, match="holds no measurement of a preset"):
        document_of(path, DocumentOptions())


def test_recording_has_each_sweep_with_its_open_loop_and_each_study() -> None:
    log = _Log()
    _study("fourcorners", log, parts=1)
    load = FakeLoad(corner(8))
    SweepRunner(make_plan(JobSpec(), (parse_axis("qd=1..16"),)), load, clock=load.clock, note=log.note).run()
    plan = step_plan()
    log.note(*rates_begin(plan))
    for curve, trials in enumerate(searched_trials(plan, 4)):
        for trial in trials:
            log.note(*rates_trial(plan, curve, trial))
    log.note(*rates_end(plan, "stopped"))
    study, swept = read_recorded_sweeps(log.events)
    tables, notes = study_sections(study.study)
    assert tables.title == "Study: fourcorners"
    assert "not complete: stopped" in str(notes.blocks)
    assert (swept.load, len(swept.curves), bool(swept.open_loop)) == ("qd", 1, True)
    titles = [section.title for section in sweep_sections(swept)]
    assert titles == ["Sweep", "Open loop", "Notes and caveats of the sweep"]
    assert "open loop not complete: stopped" in swept.notes
    alone = replace(swept, curves=())
    assert sweep_sections(alone)[0].title == "Open loop"
    assert read_recorded_sweeps([]) == []


def test_isolation_curve_of_a_recording_has_its_answer_its_charts_and_every_second() -> None:
    events = [Event(EventKind.LOAD, text, at, at, dict(data)) for at, (text, data) in enumerate(isolation_events())]
    (found,) = read_recorded_sweeps(events)
    section, notes = study_sections(found.study)
    answer, charts, seconds = section.whole[1:4]
    assert isinstance(answer, Paragraph)
    assert answer.text.startswith("riops=400 keeps the victim within 1.5 x of its p99 alone")
    assert isinstance(charts, Charts)
    assert [len(chart.curves) for chart in charts.charts] == [3, 3, 3], "none and two caps"
    assert charts.charts[0].curves[0].x == (1, 4, 16, 64)
    assert isinstance(seconds, DocumentTable)
    assert len(seconds.rows) == 14
    assert seconds.rows[0][:2] == ("alone", "none")
    assert seconds.rows[-2][1] == "riops=400"
    assert len(seconds.rows[0][2].split()) == 6
    assert "none" in str(notes.blocks)
    (stopped,) = read_recorded_sweeps(events[:6])
    assert "not complete: it went on" in str(study_sections(stopped.study)[1].blocks)
