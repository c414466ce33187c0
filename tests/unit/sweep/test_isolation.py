"""The isolation curve: caps as typed, the factor of seconds, and an answer only where the data say it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from collectors.session.objects import event_from_json, event_to_json
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.isolation.aggressor_group import find_hierarchy
from engine.isolation.caps import NO_CAP, Cap, shares_of
from engine.isolation.factor import Baseline, FactorOf, baseline_of, figure_for
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy, study_document
from engine.isolation.victim import VictimMeter, VictimSecond, pooled_p99_ns
from engine.replacing import replace
from engine.results.histogram import bucket_of
from engine.running.status import LoadStatus
from tests.app.isolation_states import ALL, isolation_events, isolation_plan, isolation_points
from tests.recorded import recorded_isolation
from tests.unit.documents.printed import printed

_RATE = 200
_LOW, _HIGH = AggressorLoad(1, "4k"), AggressorLoad(32, "4k")
_TIGHT, _LOOSE = Cap(100), Cap(1000)


def _second(latency_ms: float, ios: int = _RATE) -> VictimSecond:
    """A second in which all I/Os took the same."""
    latency_ns = int(latency_ms * 1e6)
    cells = ([bucket_of(latency_ns)], [ios]) if ios else ([], [])
    return VictimSecond(1.0, ios, 0, latency_ns * ios, np.array(cells[0], np.uint16), np.array(cells[1], np.uint64))


def _seconds(latency_ms: float) -> tuple[VictimSecond, ...]:
    return (_second(latency_ms),) * 5


def _study(*beside: IsolationPoint, alone_ms: Sequence[float] = (1.0, 1.0)) -> IsolationStudy:
    first, last = (IsolationPoint(None, NO_CAP, None, _seconds(each)) for each in alone_ms)
    return IsolationStudy(("/dev/sdc",), _RATE, FactorOf.P99, 1.5, (first, *beside, last))


def _point(load: AggressorLoad, cap: Cap, iops: float, latency_ms: float) -> IsolationPoint:
    return IsolationPoint(load, cap, iops, _seconds(latency_ms))


_UNCAPPED = (_point(_LOW, NO_CAP, 2000.0, 2.0), _point(_HIGH, NO_CAP, 9000.0, 20.0))


def test_caps_have_the_names_of_their_version_of_control_groups() -> None:
    cap = Cap(500, 1 << 20)
    assert cap.settings(unified=True) == ["io.max.riops=500", "io.max.rbps=1048576"]
    assert cap.settings(unified=False) == ["blkio.throttle.read_iops=500", "blkio.throttle.read_bps=1048576"]
    assert shares_of(1000.0) == (Cap(500), Cap(100))
    assert shares_of(1.0) == (Cap(1),)


def test_factor_is_the_time_alone_over_that_of_the_second() -> None:
    baseline = Baseline(FactorOf.P99, 1e6)
    assert baseline.factor(_second(1.0)) == pytest.approx(1.0, rel=0.05)
    assert baseline.factor(_second(4.0)) == pytest.approx(0.25, rel=0.05)
    assert baseline.factor(_second(0.0, ios=0)) == 0.0
    assert baseline.factor(_second(4.0, ios=50)) is None


def test_low_factor_is_the_5th_percentile_of_enough_seconds() -> None:
    baseline = Baseline(FactorOf.MEAN, 1e6)
    seconds = [_second(1.0)] * 19 + [_second(10.0)]
    factors = sorted([1.0] * 19 + [0.1])
    assert baseline.low_factor(seconds) == pytest.approx(np.percentile(factors, 5))
    assert baseline.low_factor(seconds[:2]) is None
    few = Baseline(FactorOf.P99, 1e6)
    assert few.low_factor([_second(1.0)] * 3 + [_second(1.0, ios=10)] * 7) is None


def test_baseline_is_the_median_of_the_seconds_alone() -> None:
    seconds = [_second(1.0), _second(1.0), _second(50.0)]
    baseline = baseline_of(seconds, FactorOf.MEAN)
    assert baseline is not None
    assert baseline.typical_ns == 1e6
    assert baseline_of([_second(1.0, ios=20)] * 5, FactorOf.P99) is None
    assert (figure_for(500), figure_for(50)) == (FactorOf.P99, FactorOf.MEAN)


def test_p99_of_seconds_is_that_of_all_their_ios() -> None:
    slow = _second(10.0, ios=5)
    assert pooled_p99_ns((_second(1.0), slow)) == pytest.approx(10e6, rel=0.05)
    assert pooled_p99_ns((slow,)) is None
    assert pooled_p99_ns(()) is None


def test_answer_is_the_loosest_cap_that_isolates_at_every_load() -> None:
    loose = (_point(_LOW, _LOOSE, 900.0, 1.2), _point(_HIGH, _LOOSE, 1000.0, 1.3))
    tight = (_point(_LOW, _TIGHT, 100.0, 1.0), _point(_HIGH, _TIGHT, 100.0, 1.0))
    answer = _study(*_UNCAPPED, *loose, *tight).answer
    assert answer.startswith("riops=1000 keeps the victim within 1.5 x of its p99 alone at every load measured")
    assert answer.endswith("the aggressor has 1,000 IOPS then, 9,000 without a cap")


def test_answer_names_a_tighter_cap_where_the_loose_one_fails_at_one_load() -> None:
    loose = (_point(_LOW, _LOOSE, 900.0, 1.2), _point(_HIGH, _LOOSE, 1000.0, 3.0))
    tight = (_point(_LOW, _TIGHT, 100.0, 1.0), _point(_HIGH, _TIGHT, 100.0, 1.1))
    assert _study(*_UNCAPPED, *loose, *tight).answer.startswith("riops=100 keeps")
    assert _study(*_UNCAPPED, *loose).answer.startswith("no cap measured keeps the victim within 1.5 x")


def test_answer_says_where_no_cap_is_needed() -> None:
    assert _study(_point(_HIGH, NO_CAP, 500.0, 1.0)).answer.startswith("no cap is needed up to QD 32, 4k")


def test_answer_is_not_given_where_the_data_do_not_say_it() -> None:
    study = _study(*_UNCAPPED)
    few = (_second(1.0, ios=20),) * 5
    cases = [
        ("points are missing", replace(study, ended="stopped")),
        ("too few I/Os", replace(study, points=(replace(study.points[0], seconds=few), *study.points[1:]))),
        ("too few seconds", _study(replace(_UNCAPPED[0], seconds=few))),
        ("at the end was ", _study(*_UNCAPPED, alone_ms=(1.0, 3.0))),
        ("at the end was 0.3", _study(*_UNCAPPED, alone_ms=(3.0, 1.0))),
        ("at the end is not known", replace(study, points=study.points[:-1])),
    ]
    for reason, case in cases:
        assert case.answer.startswith("not said which cap isolates"), reason
        assert reason in case.answer


def test_table_and_document_have_every_point() -> None:
    starved = IsolationPoint(_HIGH, _TIGHT, None, (_second(0.0, ios=0),) * 5)
    study = _study(*_UNCAPPED, starved)
    lines = printed(study).splitlines()
    rows = [line.split()[0] for line in lines[lines.index("seconds:") :] if line and not line.startswith(" ")]
    assert [row for row in rows if row == "alone"] == ["alone"] * 2
    document = json.loads(json.dumps(study_document(study), allow_nan=False))
    assert (document["schema"], document["preset"], document["complete"]) == ("lunscope.preset/1", "isolation", True)
    rows = document["tables"][0]["rows"]
    assert [row["aggressor_queue_depth"] for row in rows] == ["alone", 1, 32, 32, "alone"]
    assert rows[2]["isolation_factor_p5"] == pytest.approx(0.05, rel=0.1)
    assert (rows[3]["victim_iops"], rows[3]["victim_p99_ms"], rows[3]["isolation_factor_p5"]) == (0, None, 0)
    points = document["isolation"]["points"]
    assert [len(point["seconds"]) for point in points] == [5] * 5
    assert points[2]["cap"] == {"reads_per_s": None, "bytes_per_s": None}
    assert points[3]["cap"]["reads_per_s"] == 100


def _events(count: int = ALL) -> list[Event]:
    return [Event(EventKind.LOAD, text, at, at, dict(data)) for at, (text, data) in enumerate(isolation_events())][
        :count
    ]


def test_a_recorded_curve_is_read_as_it_was_measured_up_to_any_moment() -> None:
    plan = isolation_plan()
    measured = replace(plan.study, targets=("/nonexistent/diska",), points=tuple(isolation_points(plan)))
    read = recorded_isolation([event_from_json(event_to_json(event)) for event in _events()])
    assert read is not None
    assert (read.is_over, read.plan.expected, read.study.is_complete) == (True, 14, True)
    assert study_document(read.study) == study_document(measured)
    for count in range(1, 16):
        part = recorded_isolation(_events(count))
        assert part is not None
        assert (len(part.study.points), part.is_over) == (count - 1, False)


@pytest.mark.parametrize(
    "point",
    [
        "",
        "[]",
        "{}",
        '{"load":null,"cap":"none","iops":null,"seconds":[[1,1,0,1,[99999],[1]]]}',
        '{"load":null,"cap":"none","iops":null,"seconds":[[1,1,0,1,[2,1],[1,1]]]}',
        '{"load":null,"cap":"none","iops":null,"seconds":[[1,1,0,1,["a"],[1]]]}',
        '{"load":null,"cap":"none","iops":-1,"seconds":[]}',
        '{"load":[1e400,"4k"],"cap":"none","iops":1,"seconds":[]}',
        '{"load":[0,"4k"],"cap":"none","iops":1,"seconds":[]}',
        '{"load":[1],"cap":"none","iops":1,"seconds":[]}',
        '{"load":null,"cap":"wiops=1","iops":1,"seconds":[]}',
    ],
)
def test_damaged_points_of_a_recording_are_left_out(point: str) -> None:
    begun, *_ = _events(1)
    damaged = Event(EventKind.LOAD, "", 1, 1, {"isolation": "point", "point": point})
    read = recorded_isolation([begun, damaged, *_events()[1:]])
    assert read is not None
    assert len(read.study.points) == 14


@pytest.mark.parametrize(
    "change", [{"figure": "x"}, {"within": "nan"}, {"rate": None}, {"points": 0}, {"targets": "{"}]
)
def test_damaged_begin_of_a_recording_is_no_curve(change: dict[str, str | float | None]) -> None:
    first, *others = _events()
    assert recorded_isolation([replace(first, data={**first.data, **change}), *others]) is None


def test_points_that_were_skipped_are_named() -> None:
    study = replace(_study(*_UNCAPPED), left_out=("beside QD 4, 4k, cap none",))
    assert not study.is_complete
    assert "points are missing" in study.answer
    assert "- left out: beside QD 4, 4k, cap none" in printed(study).splitlines()
    document = study_document(study)
    assert (document["complete"], document["remarks"]) == (False, ["left out: beside QD 4, 4k, cap none"])


class _Victim:
    """A load whose statistics are those of a script; each reading of them is a second later."""

    def __init__(self, *totals: tuple[int, int, float]) -> None:
        self.totals, self.at = totals, -1
        self.status = LoadStatus()

    def peek(self) -> NDArray[np.uint64]:
        self.at += 1
        return np.zeros((1, 17), np.uint64)

    def last_epoch(self) -> object:
        epoch, ios, latency_ms = self.totals[self.at]
        cells = [bucket_of(int(latency_ms * 1e6))], [ios]
        total = SimpleNamespace(
            ios=ios, latency_sum_ns=ios * 10**6, buckets=np.array(cells[0], np.uint16), counts=np.array(cells[1])
        )
        return SimpleNamespace(index=epoch, split=SimpleNamespace(total=total))

    def wait(self, _timeout_s: float) -> bool:
        return False


def test_seconds_are_what_the_statistics_grew_by(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.count(start=100.0, step=0.5)
    monkeypatch.setattr("engine.isolation.victim.time.monotonic", lambda: next(now))
    shown: list[int] = []
    meter = VictimMeter(_Victim((0, 500, 1.0), (0, 700, 1.0), (1, 50, 1.0), (1, 350, 1.0)), lambda _s: None)  # type: ignore[arg-type]
    seconds = meter.seconds(3, lambda: None, lambda found: shown.append(len(found)))
    assert [second.ios for second in seconds] == [200, 300], "the one in which the knobs were turned is none"
    assert [int(second.counts.sum()) for second in seconds] == [200, 300]
    assert shown == [1, 2]


def test_host_without_groups_that_limit_io_is_refused_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mount cgroup2"):
        find_hierarchy(tmp_path)


def test_groups_without_an_io_controller_are_refused_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "fs" / "cgroup"
    root.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("cpu io memory\n")
    (root / "cgroup.subtree_control").write_text("cpu\n")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(UsageError, match=r"echo \+io > .*subtree_control"):
        find_hierarchy(tmp_path)
    (root / "cgroup.subtree_control").write_text("cpu io\n")
    assert find_hierarchy(tmp_path).unified
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="run as root"):
        find_hierarchy(tmp_path)
