"""Presets: axes scaled to the targets and the host, points measured once, and the studies' tables."""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from collectors.advice.measured import answer_sections
from collectors.session.objects import event_from_json, event_to_json
from engine.errors import RefusedError, UsageError
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, Knobs, Mode, PathSpec, Permissions, TargetSpec
from engine.replacing import replace
from engine.study.trial_file import TrialFile
from engine.sweep.axes import parse_axis
from engine.sweep.events import RecordedSweep
from engine.sweep.hosts_knob import hosts_knob
from engine.sweep.plan import Curve, make_plan
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.presets.plans import PresetPlan, plan_preset, preset_points
from engine.sweep.presets.preset import HostSize, doubled
from engine.sweep.presets.recorded import recorded_study, studies
from engine.sweep.presets.registry import PRESETS, fleet_preset, preset_named
from engine.sweep.runner import SweepResult, SweepRunner
from engine.sweep.tuning import SweepTuning
from tests.recorded import recorded_sweep
from tests.unit.documents.printed import shown, unwrapped
from tests.unit.sweep.fake_load import FakeLoad

HOST = HostSize(cpus=4, memory_bytes=16 << 30)
LUN = JobSpec(targets=(TargetSpec.lun((PathSpec("/dev/a"), PathSpec("/dev/b"))),))
DISK = JobSpec(targets=(TargetSpec("/dev/a"),))
WRITABLE = Permissions(frozenset({"/dev/a", "/dev/b"}))


def _scratch(count: int) -> JobSpec:
    return JobSpec(targets=(TargetSpec(),) * count)


def _plan(name: str, *vary: str, job: JobSpec | None = None, permissions: Permissions = WRITABLE) -> PresetPlan:
    job = job or {"multipath": LUN, "flashcache": DISK}.get(name) or _scratch(4)
    return plan_preset(preset_named(name), job, tuple(map(parse_axis, vary)), permissions, host=HOST, point_s=1.0)


@functools.cache
def _measured(plan: PresetPlan) -> PresetOutcome:
    results = list[SweepResult]()
    for _, part in plan.parts:
        load = FakeLoad(lambda depth: 5000 * min(depth, 10))
        results.append(SweepRunner(part, load, clock=load.clock).run())
    return PresetOutcome(plan, tuple(results), ("disk a", "disk b"))


def _axis(plan: PresetPlan, key: str) -> Sequence[object]:
    return next(axis.values for axis in plan.parts[0][1].axes if axis.knob.key == key)


@pytest.mark.parametrize(("most", "values"), [(1, "1"), (2, "1,2"), (6, "1,2,4,6"), (8, "1,2,4,8")])
def test_disks_double_up_to_all(most: int, values: str) -> None:
    assert doubled(most) == values


@pytest.mark.parametrize("name", PRESETS)
def test_each_point_of_the_axes_is_measured_once_and_printed(name: str) -> None:
    plan = _plan(name)
    outcome = _measured(plan)
    assert outcome.is_complete
    for (_, part), result in zip(plan.parts, outcome.results, strict=True):
        cases = [point.case for point in preset_points("", result)]
        assert len(set(cases)) == part.points
        assert len(cases) == part.trials == part.points * (part.rounds or 1)
        combinations = 1
        for axis in part.axes:
            combinations *= len(axis.values)
        assert part.rounds or combinations == part.points
    assert outcome.tables
    text = shown(answer_sections([outcome]))
    assert f"Published elsewhere, on other hardware ({plan.preset.source})" in unwrapped(text)
    assert "not complete" not in text
    json.dumps(outcome_document(outcome), allow_nan=False)


@pytest.mark.parametrize("name", PRESETS)
def test_each_published_row_is_shown_once(name: str) -> None:
    for table in _measured(_plan(name)).tables:
        beside = [row.published for row in table.rows if row.published]
        assert sorted({*beside, *table.published_only}) == sorted(table.published)
        assert not set(beside) & set(table.published_only)
        assert all(len(row) == len(table.published_columns) for row in table.published)
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
        assert len({column.key for column in table.columns}) == len(table.columns)


def test_published_throughput_of_skytap_is_iops_times_block_size() -> None:
    for block, _disks, _depth, iops, megabytes, _peak in _measured(_plan("skytap")).tables[0].published:
        expected = float(iops.replace(",", "")) * int(block.removesuffix("k")) * 1024 / 1e6
        assert float(megabytes.replace(",", "")) == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
def test_skytap_names_the_best_balance_of_each_block_size_with_the_published_row_beside() -> None:
    best = _measured(_plan("skytap")).tables[0]
    assert [row.cells[0] for row in best.rows] == ["4k", "8k", "16k", "64k"]
    # The load rises in proportion up to 10 outstanding and not at all beyond.
    assert {row.cells[3] for row in best.rows} == {10.0}
    assert [row.published[0] for row in best.rows] == ["4k", "8k", "16k", "64k"]
    narrow = _measured(_plan("skytap", "bs=4k,32k")).tables[0]
    assert [bool(row.published) for row in narrow.rows] == [True, False]
    assert [row[0] for row in narrow.published_only] == ["8k", "16k", "64k"]


def test_skytap_chooses_by_peaks_not_by_means() -> None:
    """At every depth the mean is 2 ms; from 8 outstanding on the largest of a second is twenty times as long."""
    outcome = _measured(_plan("skytap", "bs=4k", "stripe_width=1"))
    curve = outcome.results[0].curves[0]
    trials = tuple(
        replace(trial, iops=500 * trial.load, latency_ns=2e6, average_peak_ns=3e6 if trial.load < 8 else 6e7)
        for trial in curve.trials
    )
    peaked = replace(outcome, results=(replace(outcome.results[0], curves=(replace(curve, trials=trials),)),))
    assert [row.cells[3] for row in peaked.tables[0].rows] == [3.0]
    unknown = tuple(replace(trial, average_peak_ns=None) for trial in trials)
    short = replace(outcome, results=(replace(outcome.results[0], curves=(replace(curve, trials=unknown),)),))
    assert [table.title for table in short.tables] == ["every point"]


def test_facts_are_those_of_the_studies() -> None:
    facts = {name: " ".join(preset.published) for name, preset in PRESETS.items()}
    assert "less than one-quarter of the time of the former release" in facts["dump"]
    assert "all SAN subsystem and cache disks" in facts["flashcache"]
    assert "2.1x the former release" in facts["multipath"]


def test_fourcorners_averages_the_mix_and_compares_with_the_fewest_disks() -> None:
    outcome = _measured(_plan("fourcorners", "stripe_width=1,2"))
    scale, sequential, random = outcome.tables
    assert [row.published[0] for row in scale.rows] == ["1 VM, 1 disk", "1 VM, 2 disks"]
    figures = dict(zip((column.key for column in scale.columns), scale.rows[0].cells, strict=True))
    iops = [cell for cell in random.rows[0].cells[3::2] if isinstance(cell, float)]
    assert len(iops) == 5
    assert figures["random_average_iops"] == pytest.approx(statistics.fmean(iops))
    assert figures["random_highest_iops"] == max(iops)
    assert figures["gain_pct"] == 0
    assert [column.key for column in sequential.columns][3::2] == [
        f"mebibytes_per_s_read_pct_{share}" for share in (0, 25, 50, 75, 100)
    ]


def test_fourcorners_over_hosts_compares_hosts_and_disks_with_the_same_cases(tmp_path: Path) -> None:
    plan = _plan_over(4, "hosts=1,4", "stripe_width=1,4")
    assert _axis(plan, "hosts") == (1, 4)
    outcome = _measured(plan)
    scale, _, random = outcome.tables
    assert [row.cells[:3] for row in scale.rows] == [(1, 1, 1), (1, 4, 4), (4, 1, 4), (4, 4, 16)]
    assert [row.published[0] for row in scale.rows] == [
        "1 host, 1 datastore",
        "1 host, 4 datastores",
        "4 hosts, 1 datastore",
        "4 hosts, 4 datastores",
    ]
    keys = [column.key for column in scale.columns]
    average, per_flow = (keys.index(key) for key in ("random_average_iops", "random_average_iops_per_flow"))
    for row in scale.rows:
        figures = [cell for cell in row.cells if isinstance(cell, float)]
        assert len(row.cells) == len(keys)
        assert row.cells[per_flow] == pytest.approx(figures[keys.index("random_average_iops") - 1] / figures[2])
        assert row.cells[average] is not None
    assert len(random.rows) == 4
    of_these = TrialFile(tmp_path / "trials", plan.parts[0][1], ("h1", "h2"))
    with of_these:
        pass
    with pytest.raises(UsageError), TrialFile(tmp_path / "trials", plan.parts[0][1], ("h1", "h3")):
        pass
    with pytest.raises(UsageError, match="no preset over hosts"):
        fleet_preset("skytap", 4)


@pytest.mark.parametrize(
    ("name", "vary"), [("multipath", "bs=4k"), ("directio", "bs=64k"), ("fourcorners", "bs=16k"), ("skytap", "bs=32k")]
)
def test_published_figures_are_beside_the_same_block_size_only(name: str, vary: str) -> None:
    for table in _measured(_plan(name, vary)).tables:
        assert not any(row.published for row in table.rows)
        assert table.published_only == table.published


def test_disks_follow_the_targets_and_threads_the_memory() -> None:
    assert _axis(_plan("skytap", job=_scratch(6)), "stripe_width") == (1, 2, 4, 6)
    assert _axis(_plan("fourcorners", job=_scratch(32)), "stripe_width") == (1, 2, 4, 8)
    assert _plan("skytap", job=_scratch(1)).remarks == (
        "one target: the number of disks does not vary; give more with --target",
        "average peak latencies need whole seconds: give --runtime 2s or more to have them",
    )
    assert _axis(_plan("directio"), "qd") == (1, 10, 100, 1000)
    small = HostSize(cpus=1, memory_bytes=512 << 20)
    plan = plan_preset(preset_named("directio"), _scratch(1), (), WRITABLE, host=small)
    assert _axis(plan, "qd") == (1, 10, 64)
    assert any("up to 64 threads instead of 1000" in remark for remark in plan.remarks)


@pytest.mark.parametrize("name", ["flashcache", "directio"])
def test_threads_of_a_study_are_its_queue_depth(name: str) -> None:
    plan = _plan(name, "threads=2,8")
    for _, part in plan.parts:
        assert part.load is not None
        assert (part.load.knob.key, part.load.values) == ("qd", (2, 8))
        assert all(part.knobs_at(curve, 8).queue_depth == 8 for curve in part.curves)
    with pytest.raises(UsageError, match="given twice"):
        _plan(name, "threads=2,8", "qd=4")
    with pytest.raises(UsageError, match="its axes are"):
        _plan(name, "stripe_width=1")
    with pytest.raises(UsageError, match="no axis of --preset dump"):
        _plan("dump", "threads=2")


def test_what_writes_is_left_out_where_it_may_not_write_and_reads_are_left() -> None:
    plan = _plan("multipath", permissions=Permissions(frozenset({"/dev/a"})))
    assert _axis(plan, "read_pct") == (100.0,)
    assert "all that writes is left out: allow it with --allow-write /dev/b" in plan.remarks
    assert _axis(_plan("multipath"), "read_pct") == (100.0, 0.0)
    for name in ("skytap", "dump"):
        with pytest.raises(RefusedError, match="--allow-write /dev/a"):
            _plan(name, job=JobSpec(targets=(TargetSpec("/dev/a"),)), permissions=Permissions())
    with pytest.raises(RefusedError, match="--allow-write /dev/a"):
        _plan("multipath", "read_pct=100,50", permissions=Permissions())


@pytest.mark.parametrize(
    ("name", "vary", "says"),
    [
        ("nightly", (), "no such preset: one of skytap"),
        ("skytap", ("policy=round-robin",), "no axis of --preset skytap: its axes are bs"),
        ("skytap", ("qd=1,2", "qd=4"), "qd: given twice"),
        ("skytap", ("stripe_width=9",), "stripe_width=9"),
    ],
)
def test_what_cannot_be_meant_is_refused(name: str, vary: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        _plan(name, *vary)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_multipath_needs_a_lun_of_several_paths() -> None:
    with pytest.raises(UsageError, match="name the paths of a LUN, such as --lun sda,sdb"):
        _plan("multipath", job=_scratch(2))


def test_time_is_said_for_all_parts_together() -> None:
    plan = _plan("fourcorners")
    assert plan.words.endswith("30 points of 1 s, about 66 s")
    job, changes = _scratch(4), tuple(map(parse_axis, ()))
    longer = plan_preset(preset_named("fourcorners"), job, changes, WRITABLE, host=HOST, point_s=5.0)
    assert longer.words.endswith("30 points of 5 s, about 3 min (up to about 4 min)")
    assert longer.remarks == ()


def test_a_point_where_nothing_completed_has_no_figures() -> None:
    plan = _plan("directio")
    outcome = _measured(plan)
    curve = outcome.results[0].curves[0]
    none = replace(curve.trials[0], ios=0, iops=0.0, bytes_per_s=0.0, latency_ns=0.0)
    result = replace(outcome.results[0], curves=(replace(curve, trials=(none,)),))
    document: Any = outcome_document(replace(outcome, results=(result,)))
    (row,) = (row for table in document["tables"] for row in table["rows"] if "no I/O completed" in str(row.values()))
    assert (row["direction"], row["threads"], row["iops"], row["megabytes_per_s"]) == ("write", 1, None, None)
    lines = shown(answer_sections([replace(outcome, results=(result,))])).splitlines()
    assert not any(" 0.0" in each or " 0 " in each for each in lines if each.startswith("write"))


def test_blocks_of_directio_and_dump_are_not_cut() -> None:
    for name in ("directio", "dump"):
        assert _plan(name).parts[0][1].job.stripe_unit_bytes == 1 << 20


def test_a_cached_mode_does_not_find_what_another_one_left_in_memory() -> None:
    """A turn to direct I/O writes back and drops; a load without an axis of modes keeps its cache."""
    plan = _plan("directio", "qd=1", "read_pct=100").parts[0][1]
    load = FakeLoad(lambda _: 5000)
    SweepRunner(plan, load, clock=load.clock).run()
    assert [knobs.mode.value for knobs in load.turns] == ["direct", "direct", "buffered", "direct", "sync"]
    plan = make_plan(JobSpec(knobs=Knobs(mode=Mode.BUFFERED)), (parse_axis("qd=1,2"),))
    load = FakeLoad(lambda _: 5000)
    SweepRunner(plan, load, clock=load.clock).run()
    assert {knobs.mode for knobs in load.turns} == {Mode.BUFFERED}


def test_a_file_without_direct_io_is_measured_with_its_cache() -> None:
    plan = _plan("directio", "qd=1", "read_pct=100", "mode=buffered").parts[0][1]
    load = RefusesDirect(lambda _: 5000)
    result = SweepRunner(plan, load, clock=load.clock).run()
    assert (result.is_complete, len(result.curves[0].trials)) == (True, 1)


class RefusesDirect(FakeLoad):
    def turn(self, knobs: Knobs) -> None:
        if knobs.mode is Mode.DIRECT:
            raise UsageError("no direct I/O")
        super().turn(knobs)


@pytest.mark.parametrize(
    ("disks", "memory_pct"),
    [
        ([{"top": True, "read_bytes_per_s": 1e6}, {"top": False, "read_bytes_per_s": 5e6}], 90.0),
        ([{"top": True, "read_bytes_per_s": 2e7}], 0.0),
        ([{"top": True, "read_bytes_per_s": None}], None),
        ([], None),
        (None, None),
    ],
)
def test_cells_of_a_cached_mode_say_how_much_was_memory(disks: list[dict[str, object]], memory_pct: float) -> None:
    plan = _plan("directio", "qd=1", "read_pct=100")
    outcome = _measured(plan)
    curves = tuple(
        replace(curve, trials=tuple(replace(one, bytes_per_s=1e7, devices={"disks": disks}) for one in curve.trials))
        for curve in outcome.results[0].curves
    )
    table = replace(outcome, results=(replace(outcome.results[0], curves=curves),)).tables[0]
    cells = dict(zip((column.key for column in table.columns), table.rows[0].cells, strict=True))
    assert cells["memory_pct_mode_direct"] is None
    assert cells["memory_pct_mode_buffered"] == cells["memory_pct_mode_sync"] == memory_pct


def _plan_over(hosts: int, *vary: str) -> PresetPlan:
    others = {"hosts": hosts_knob(hosts)}
    changes, study = tuple(parse_axis(text, others) for text in vary), fleet_preset("fourcorners", hosts)
    return plan_preset(study, _scratch(4), changes, WRITABLE, host=HOST, point_s=2.0, others=others)


def _recorded(plan: PresetPlan, parts: int | None = None) -> tuple[PresetOutcome, list[RecordedSweep]]:
    """Measure parts of a preset with an event for everything, and read the sweeps back."""
    events, results = list[list[Event]](), list[SweepResult]()
    for _, part in plan.parts[:parts]:
        load, kept = FakeLoad(lambda depth: 5000 * min(depth, 10)), list[Event]()
        events.append(kept)

        def note(text: str, data: Mapping[str, str | float | None], kept: list[Event] = kept) -> None:
            kept.append(event_from_json(event_to_json(Event.now(EventKind.LOAD, text, **data))))

        results.append(SweepRunner(part, load, clock=load.clock, note=note).run())
    read = [sweep for kept in events if (sweep := recorded_sweep(kept)) is not None]
    return PresetOutcome(plan, tuple(results), ()), read


@pytest.mark.parametrize("plan", [*map(_plan, PRESETS), _plan_over(4)], ids=[*PRESETS, "fourcorners over hosts"])
def test_tables_of_a_recording_are_those_that_were_printed(plan: PresetPlan) -> None:
    outcome, sweeps = _recorded(plan)
    (parts,) = studies(sweeps)
    study = recorded_study(parts)
    assert study is not None
    assert shown(answer_sections([study])[:1]) == shown(answer_sections([outcome])[:1])
    assert all(sweep.plan.trials == sweep.points.done for sweep in sweeps)


def test_a_recorded_study_that_is_not_complete_says_so_and_others_begin_anew() -> None:
    _, (before,) = _recorded(_plan("flashcache"), parts=1)
    study = recorded_study((before,))
    assert study is not None
    assert shown(answer_sections([study])).endswith("- not complete: stopped; 8 measurements were made")
    assert [len(parts) for parts in studies([before, before])] == [1, 1]
    unknown = replace(before, plan=replace(before.plan, preset="of another version"))
    assert recorded_study((unknown,)) is None
    plain = replace(before, plan=replace(before.plan, preset="", part=""))
    assert [len(parts) for parts in studies([plain, plain])] == [1, 1]
    assert recorded_study((plain,)) is None


def test_stopped_preset_shows_what_was_measured() -> None:
    plan = _plan("fourcorners")
    whole = _measured(plan)
    load = FakeLoad(lambda depth: 1000 * depth)
    stopped = SweepRunner(plan.parts[1][1], load, clock=load.clock)
    stopped.stop()
    outcome = PresetOutcome(plan, (whole.results[0], stopped.run()), ())
    assert not outcome.is_complete
    assert shown(answer_sections([outcome])).endswith("- not complete: stopped; 15 measurements were made")
    assert [table.title for table in outcome.tables] == ["sequential, MiB/s by share of reads"]


def _eightfold(iops: float, depth: int) -> float:
    return iops * min(depth, 8)


def _toggled(*iops: float, vary: Sequence[str] = (), noise: float = 0.0) -> PresetOutcome:
    """Measure flashcache before and after a command, and again after another, on a disk of so many IOPS each time."""
    changes = tuple(map(parse_axis, vary))
    plan = plan_preset(
        preset_named("flashcache"), DISK, changes, WRITABLE, host=HOST, point_s=1.0, is_back=len(iops) > 2
    )
    assert [part.name for part, _ in plan.parts] == ["before", "after", "again"][: len(iops)]
    results = []
    for (_, part), each in zip(plan.parts, iops, strict=True):
        load = FakeLoad(functools.partial(_eightfold, each))
        result = SweepRunner(part, load, clock=load.clock).run()
        curves = tuple(
            replace(curve, trials=tuple(replace(trial, half_width=noise) for trial in curve.trials))
            for curve in result.curves
        )
        results.append(replace(result, curves=curves))
    return PresetOutcome(plan, tuple(results), ("disk a",))


def test_fast_slow_fast_gives_the_ratio_to_the_mean_of_both() -> None:
    table = _toggled(1000, 2700, 1020, vary=("qd=1,4",)).tables[0]
    keys = [column.key for column in table.columns]
    assert keys[-1] == "verdict"
    for row in table.rows[:-1]:
        cells = dict(zip(keys, row.cells, strict=True))
        assert cells["verdict"] == ""
        assert cells["iops_times"] == pytest.approx(2700 / 1010, rel=0.01)
    highest = dict(zip(keys, table.rows[-1].cells, strict=True))
    assert highest["iops_times"] == pytest.approx(2700 / 1010, rel=0.01)
    assert highest["mean_ms_times"] is None


def test_what_drifts_is_undecided_and_has_no_ratio() -> None:
    table = _toggled(1000, 1300, 1600, vary=("qd=1,4",)).tables[0]
    keys = [column.key for column in table.columns]
    for row in table.rows:
        cells = dict(zip(keys, row.cells, strict=True))
        assert str(cells["verdict"]).startswith("undecided: again +60 % IOPS")
        assert cells["iops_times"] is None
        assert cells["iops_before"] != cells["iops_again"]
    # As far apart, but no more than noise.
    noisy = _toggled(1000, 1300, 1600, vary=("qd=1,4",), noise=0.5).tables[0]
    assert all(row.cells[-1] == "" for row in noisy.rows)
    # Without any interval nobody knows.
    unknown = _toggled(1000, 1300, 1000, vary=("qd=1,4",), noise=1.0).tables[0]
    assert all("too few I/Os" in str(row.cells[-1]) for row in unknown.rows)


def test_a_study_that_was_measured_again_is_read_from_its_recording() -> None:
    outcome = _toggled(1000, 2700, 1020, vary=("qd=1,4",))
    _, sweeps = _recorded(outcome.plan)
    (parts,) = studies(sweeps)
    study = recorded_study(parts)
    assert study is not None
    assert [part.name for part, _ in study.plan.parts] == ["before", "after", "again"]


@pytest.mark.parametrize(
    "name", [name for name, preset in PRESETS.items() if name != "multipath" and not preset.rounds]
)
def test_tunables_vary_in_every_preset_with_tables_for_each_value(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.sweep.presets.plans.check_tuning", lambda _plan: None)  # The targets are no disks.
    plan = _plan(name, "tune.nr_requests=32,128")
    plain = _plan(name)
    assert [part.points for part in plan.plans] == [2 * part.points for part in plain.plans]
    outcome = _measured_tuned(plan)
    titles = [table.title for table in outcome.tables]
    own = [table.title for table in _measured(plain).tables]
    assert titles == [f"tune.nr_requests={value}: {title}" for value in (32, 128) for title in own]
    with pytest.raises(UsageError, match="given twice"):
        _plan(name, "tune.nr_requests=32", "tune.nr_requests=64")


class _NoTuning(SweepTuning):
    """Sets nothing: the targets are no disks."""

    def set(self, curve: Curve) -> None:
        assert any(knob.key == "tune.nr_requests" for knob, _ in curve.values)


def _measured_tuned(plan: PresetPlan) -> PresetOutcome:
    results = []
    for _, part in plan.parts:
        load = FakeLoad(lambda depth: 5000 * min(depth, 10))
        results.append(SweepRunner(part, load, clock=load.clock, tuning=_NoTuning(part)).run())
    return PresetOutcome(plan, tuple(results), ("disk a", "disk b"))
