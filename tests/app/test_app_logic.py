"""What screens decide before anything is drawn: knob steps, effects, history, moments, forms."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from collectors.hotness import hottest
from collectors.model import Frame, FrameTable, HostFacts, Rows, Step, Topology
from collectors.rates import derive
from collectors.tables.block.all_disks import ALL_DISKS, total_disks
from engine.errors import UsageError
from engine.job.knobs import StepContext
from engine.job.knobs.steps import QUEUE_DEPTHS
from engine.job.spec import MAX_BLOCK_BYTES, MAX_QUEUE_DEPTH, Access, BlockShare, JobSpec, Knobs, Mode, TargetSpec
from engine.replacing import replace
from tests.app.sources import SECOND_NS, START_NS, make_samples, make_topology
from tui.history.charts import FEWEST_TICKS, History, kept_fields
from tui.history.subjects import ChartSubject, next_subject, trace_of
from tui.load.form import form_values, job_from
from tui.screens.load.actions import TURNS
from tui.text.format import span_text

BENCH = StepContext(4)


def turn(name: str, knobs: Knobs, bench: StepContext = BENCH) -> Knobs:
    return TURNS[name].turned(knobs, bench)


def test_queue_depth_climbs_the_ladder_and_comes_back() -> None:
    knobs = Knobs(queue_depth=1)
    seen = [knobs.queue_depth]
    for _ in range(9):
        knobs = turn("queue_depth_up", knobs)
        seen.append(knobs.queue_depth)
    assert seen == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]
    for depth in reversed(seen[:-1]):
        knobs = turn("queue_depth_down", knobs)
        assert knobs.queue_depth == depth
    assert QUEUE_DEPTHS[-1] == MAX_QUEUE_DEPTH


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("queue_depth_up", 10, 12),
        ("queue_depth_down", 10, 8),
        ("queue_depth_down", 1, 1),
        ("queue_depth_up", MAX_QUEUE_DEPTH, MAX_QUEUE_DEPTH),
        ("queue_depth_double", 10, 20),
        ("queue_depth_double", MAX_QUEUE_DEPTH - 1, MAX_QUEUE_DEPTH),
        ("queue_depth_halve", 1, 1),
        ("queue_depth_halve", 5, 2),
    ],
)
def test_queue_depth_between_rungs_and_at_the_ends(name: str, before: int, after: int) -> None:
    assert turn(name, Knobs(queue_depth=before)).queue_depth == after


def test_width_stays_within_the_targets() -> None:
    assert turn("stripe_width_up", Knobs(stripe_width=4)).stripe_width == 4
    assert turn("stripe_width_up", Knobs(stripe_width=3)).stripe_width == 4
    assert turn("stripe_width_down", Knobs(stripe_width=1)).stripe_width == 1


def test_block_size_doubles_every_size_of_a_mix_within_the_limits() -> None:
    mix = Knobs(blocks=(BlockShare(4096, 60), BlockShare(16384, 40)))
    assert turn("block_size_up", mix).blocks == (BlockShare(8192, 60), BlockShare(32768, 40))
    assert turn("block_size_down", Knobs(blocks=(BlockShare(512),))).blocks == (BlockShare(512),)
    largest = Knobs(blocks=(BlockShare(MAX_BLOCK_BYTES),))
    assert turn("block_size_up", largest) == largest


def test_read_share_steps_by_ten_and_ends_at_the_ends() -> None:
    assert turn("read_share_down", Knobs(read_pct=100)).read_pct == 90
    assert turn("read_share_down", Knobs(read_pct=75)).read_pct == 70
    assert turn("read_share_up", Knobs(read_pct=75)).read_pct == 80
    assert turn("read_share_down", Knobs(read_pct=0)).read_pct == 0


def test_rate_comes_down_from_what_the_load_does_and_goes_off_when_it_limits_nothing() -> None:
    busy = StepContext(1, iops=12_345.0)
    limited = turn("rate_down", Knobs(), busy)
    assert limited.rate_iops == 10_000
    assert turn("rate_down", limited, busy).rate_iops == 5_000
    assert turn("rate_up", limited, StepContext(1, iops=9_990.0)).rate_iops == 20_000
    assert turn("rate_up", replace(limited, rate_iops=20_000.0), busy).rate_iops is None
    assert turn("rate_up", Knobs(), busy).rate_iops is None


def load_frame(tick: int, iops: float, latency_ms: float, p99_ms: float) -> Frame:
    row = {
        "iops": np.array([iops]),
        "await_ms": np.array([latency_ms]),
        "p99_ms": np.array([p99_ms]),
        "max_ms": np.array([2 * p99_ms]),
    }
    tables = {"load_total": FrameTable(LOAD_ROWS, row)}
    return Frame(START_NS + tick * SECOND_NS, tick * SECOND_NS, 1.0, tables, Topology(host=HostFacts()))


LOAD_ROWS = Rows(("load:1",), ("load",))


def test_history_keeps_the_past_of_rows_that_stay() -> None:
    samples = make_samples(("vda", "vdb"), 6)
    more = make_samples(("vda", "vdb", "sdc"), 10)
    history = History()
    for before, now in pairwise(samples):
        history.add(derive(before, now))
    for before, now in pairwise(more[6:]):
        history.add(derive(before, now))
    past = history.series("disks", "vda@0")
    assert past is not None
    assert len(past) == 5 + 3
    assert np.isfinite(past.values["iops"]).all()
    late = history.series("disks", "sdc@2")
    assert late is not None
    assert np.isnan(late.values["iops"][:5]).all()
    assert np.isfinite(late.values["iops"][5:]).all()
    assert history.series("disks", "nobody") is None


def test_history_ends_where_it_is_asked_to() -> None:
    samples = make_samples(count=10)
    history = History()
    for before, now in pairwise(samples):
        history.add(derive(before, now))
    held = history.series("disks", "vda@0", samples[4].time_ns)
    assert held is not None
    assert held.times_ns[-1] == samples[4].time_ns
    filling = history.filling()
    filling.add(Step(samples[0], samples[1]), derive(samples[0], samples[1]))
    history.take(filling)
    other = history.series("disks", "vda@0")
    assert other is not None
    assert len(other) == 1


def test_history_forgets_the_oldest_and_stays_within_its_budget() -> None:
    fields = len(kept_fields()["disks"])
    history = History(budget_bytes=40 * 3 * fields * 4)
    samples = make_samples(count=60)
    for before, now in pairwise(samples):
        history.add(derive(before, now))
    past = history.series("disks", "vda@0")
    assert past is not None
    assert len(past) == 40
    assert past.times_ns[-1] == samples[-1].time_ns
    assert list(np.diff(past.times_ns)) == [SECOND_NS] * 39
    assert FEWEST_TICKS <= 40


def test_totals_count_stacked_devices_once() -> None:
    topology = make_topology(("sda", "sdb", "dm-0"))
    stacked = dict(topology.devices)
    stacked["dm-0@2"] = replace(stacked["dm-0@2"], slaves=("sda", "sdb"))
    rows = Rows(tuple(stacked), ("sda", "sdb", "dm-0"))
    nan = math.nan
    columns = {
        "iops": np.array([100.0, 300.0, 400.0]),
        "await_ms": np.array([1.0, 2.0, 1.9]),
        "busy_pct": np.array([10.0, nan, 90.0]),
        "queue_ms": np.array([nan, nan, nan]),
    }
    total = total_disks(FrameTable(rows, columns), Topology(stacked))
    assert total.rows.keys == (ALL_DISKS,)
    assert total.value("iops", 0) == 400
    assert total.value("await_ms", 0) == pytest.approx(1.75)
    assert total.value("busy_pct", 0) == 10
    assert math.isnan(total.value("queue_ms", 0))


def test_subjects_offer_the_load_only_where_there_is_one() -> None:
    samples = make_samples(count=3)
    frame = derive(samples[1], samples[2])
    assert next_subject(ChartSubject.DISK, frame) is ChartSubject.ALL_DISKS
    assert next_subject(ChartSubject.ALL_DISKS, frame) is ChartSubject.DISK
    loaded = replace(frame, tables={**frame.tables, **load_frame(2, 1, 1, 1).tables})
    assert next_subject(ChartSubject.ALL_DISKS, loaded) is ChartSubject.LOAD
    trace = trace_of(ChartSubject.LOAD, None, loaded)
    assert trace is not None
    assert trace.key == "load:1"
    assert trace_of(ChartSubject.LOAD, "vda@0", frame) == trace_of(ChartSubject.DISK, "vda@0", frame)
    assert hottest(frame.tables["disks"]) == "sdc@2"
    assert hottest(None) is None


def test_spans() -> None:
    assert [span_text(seconds) for seconds in (0, 7.9, 61, 3723)] == ["0:00", "0:07", "1:01", "1:02:03"]


def test_form_gives_back_the_job_it_shows() -> None:
    job = JobSpec(
        targets=(TargetSpec("/dev/a b"), TargetSpec(None)),
        access=Access.SEQUENTIAL,
        size_bytes=1 << 20,
        runtime_s=90.0,
        seed=7,
        streams=3,
    )
    job = replace(job, knobs=replace(job.knobs, mode=Mode.DSYNC, threads=2))
    assert job_from(form_values(job, destroy_data=True), job) == job


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("targets", "", "targets"),
        ("targets", "'a", "targets"),
        ("size", "huge", "huge"),
        ("runtime", "x", "x"),
        ("threads", "-1", "threads"),
        ("seed", "one", "seed"),
        ("stripe_unit", "", "size"),
    ],
)
def test_form_names_what_it_cannot_read(field: str, text: str, message: str) -> None:
    values = form_values(JobSpec(), destroy_data=False) | {field: text}
    with pytest.raises(UsageError, match=message):
        job_from(values, JobSpec())


def test_form_spreads_over_all_targets_when_their_number_changes() -> None:
    values = form_values(JobSpec(), destroy_data=False) | {"targets": "scratch scratch /tmp/x"}
    job = job_from(values, JobSpec())
    assert job.targets == (TargetSpec(None), TargetSpec(None), TargetSpec("/tmp/x"))
    assert job.knobs.stripe_width == 3
    back = job_from(values | {"targets": "scratch"}, job)
    assert back.knobs.stripe_width == 1


def test_of_many_rows_only_those_that_are_looked_at_keep_a_long_past() -> None:
    names = tuple(f"sd{number}" for number in range(40))
    history = History(budget_bytes=FEWEST_TICKS * len(names) * len(kept_fields()["disks"]) * 4)
    samples = make_samples(names, 3 * FEWEST_TICKS, events=False)
    for before, now in pairwise(samples):
        history.add(derive(before, now))
        seen = history.series("disks", "sd3@3")
    late = history.series("disks", "sd4@4")
    assert seen is not None
    assert late is not None
    assert (len(seen), len(late)) == (len(samples) - 1, FEWEST_TICKS)
    assert late.times_ns.tolist() == seen.times_ns[-FEWEST_TICKS:].tolist()
    again = history.series("disks", "sd3@3")
    assert again is not None
    assert again.values["iops"].tolist() == seen.values["iops"].tolist()


def test_what_is_looked_at_keeps_its_past_with_a_gap_when_it_vanishes() -> None:
    names = tuple(f"sd{number}" for number in range(40))
    history = History(budget_bytes=FEWEST_TICKS * len(names) * len(kept_fields()["disks"]) * 4)
    samples = make_samples(names, 8, events=False)
    for before, now in pairwise(samples[:4]):
        history.add(derive(before, now))
    assert history.series("disks", "sd3@3") is not None
    for before, now in pairwise(make_samples(names[:2], 8, events=False)[4:]):
        history.add(derive(before, now))
    past = history.series("disks", "sd3@3")
    assert past is not None
    assert np.isfinite(past.values["iops"]).tolist() == [True] * 3 + [False] * 3
