"""Files and recordings of studies that earlier versions wrote: read as they were, and written as they are."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from engine.events import Event, EventKind
from engine.isolation.events import RecordedIsolation, recorded_measurements
from engine.job.knobs import Knobs
from engine.rate_search.events import RecordedRates
from engine.study.points import LeftOut
from engine.study.trial_file import KeptPlan, TrialFile, identities, read_trials
from engine.sweep.events import RecordedSweep
from engine.sweep.points import Point
from tests.app.isolation_states import isolation_plan
from tests.app.rate_states import searched_plan
from tests.app.sweep_states import swept_plan

KEPT = Path(__file__).parent / "kept"
SWEEP = swept_plan("qd=1..8", "stripe_width=1,2")


@pytest.mark.parametrize(
    ("name", "plan", "whole"),
    [("sweep.trials", SWEEP, 6), ("rates.trials", searched_plan(), 12), ("isolation.points", isolation_plan(), 6)],
)
def test_kept_file_is_read_and_written_alike(tmp_path: Path, name: str, plan: KeptPlan[object], whole: int) -> None:
    """The head names the plan as earlier versions did, by all of its fields; a new file has fewer of them in it."""
    head, *lines = (KEPT / name).read_text().splitlines()
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("\n".join((head, *lines)) + "\n")
    with TrialFile(old, plan) as file, TrialFile(new, plan) as again:
        found = read_trials(KEPT / name, plan.trial_kind)
        assert found.trials == file.done or name == "isolation.points"
        again.note_host(found.host or {})
        for curve, trial in file.done:
            again.append(curve, trial)
    written = new.read_text().splitlines()
    assert json.loads(written[0]).keys() == json.loads(head).keys()
    assert written[1 : 2 + whole] == lines[: 1 + whole]
    for line, before in zip(written[2 + whole :], [head, *lines][2 + whole :], strict=True):
        assert json.loads(line).items() >= json.loads(before).items()
        assert len(json.loads(line)) > len(json.loads(before))


@pytest.mark.parametrize("hosts", [(), ("a", "b")])
def test_files_outlast_knobs_that_come_later(hosts: tuple[str, ...]) -> None:
    fields = [(each.name, Any, each) for each in dataclasses.fields(Knobs)]
    later = dataclasses.make_dataclass("Knobs", [*fields, ("later", int, 7)], frozen=True)
    known = identities((Knobs(queue_depth=3),), hosts)
    assert identities((later(queue_depth=3),), hosts) == known
    assert not set(identities((later(queue_depth=3, later=8),), hosts)) & set(known)
    assert not set(identities((Knobs(queue_depth=4),), hosts)) & set(known)


def test_kept_recording_is_read() -> None:
    kept = json.loads((KEPT / "events.json").read_text())
    events = [Event.now(EventKind.LOAD, text, **data) for text, data in kept]
    sweep, rates, isolation = recorded_measurements(events)
    assert isinstance(sweep, RecordedSweep)
    assert [axis.text for axis in sweep.plan.axes] == ["qd=1..8", "stripe_width=1,2"]
    assert [len(trials) for trials in sweep.points.trials] == [4, 2]
    assert sweep.points.trials[0][1].failing == ("diskb",)
    assert sweep.points.left_out == (LeftOut(Point(1, 2), ""), LeftOut(Point(1, 4), "no room"))
    assert sweep.ended == "complete"
    assert isinstance(rates, RecordedRates)
    assert (len(rates.points.trials[0]), rates.ended, rates.points.trials[0][1].skipped) == (12, "stopped", 7)
    assert rates.plan.search == searched_plan().search
    assert isinstance(isolation, RecordedIsolation)
    assert (len(isolation.study.points), isolation.plan.expected) == (6, isolation_plan().points)
    assert isolation.study.left_out == ("beside QD 64, 4k, cap riops=2000",)
    assert isolation.study.ended == "stopped"
