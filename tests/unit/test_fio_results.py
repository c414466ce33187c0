from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from collectors.model import Step
from collectors.reports.load_series import LoadSeries
from engine.errors import LunscopeError
from engine.job.scenario import Scenario, Turn
from engine.job.spec import Access, Arrival, BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.results.fio_plot import FioRun, make_folder, write_results
from engine.results.fio_result import KnobSetting, bins, fio_document, joined, latency_shares, settings_of
from engine.results.histogram import bucket_of
from engine.results.measured import DirectionDelta, LoadInterval, ProcessUse, share_between
from engine.results.result import RunResult
from tests.unit import raw_samples
from tests.unit.synthetic import Io, epoch
from tests.unit.test_result import result_of

JOB = JobSpec((TargetSpec("/dev/x"),), runtime_s=4.0, name="night")
LATENCIES_NS = [800, 1_500, 90_000, 150_000, 150_000, 3_000_000, 40_000_000, 2_500_000_000]


def run(*knobs: Knobs, job: JobSpec = JOB) -> RunResult:
    stats = [
        epoch([Io(latency_ns=latency, at_s=0.1) for latency in LATENCIES_NS] * 20, knobs=each, index=index)
        for index, each in enumerate(knobs)
    ]
    return result_of(stats, job, ("/dev/x",))


def interval(index: int, end_s: float, ios: int, length_s: float = 1.0) -> LoadInterval:
    reads = DirectionDelta(ios, ios * 4096, ios * 50_000, {bucket_of(50_000): ios})
    return LoadInterval(index, end_s, length_s, reads, DirectionDelta(0, 0, 0), ProcessUse(0.25, 0.5, 3, 2, 1))


def only_job(setting: KnobSetting) -> dict[str, Any]:
    (job,) = json.loads(json.dumps(fio_document(setting), allow_nan=False))["jobs"]
    assert isinstance(job, dict)
    return job


def test_figures_are_those_of_the_run() -> None:
    (setting,) = settings_of(run(Knobs(8)), [interval(0, 1.0, 90), interval(0, 2.0, 70)])
    job = only_job(setting)
    read = job["read"]
    assert (read["total_ios"], read["io_bytes"], read["iops"], read["runtime"]) == (160, 160 * 4096, 80.0, 2000)
    assert (read["bw_bytes"], read["bw"]) == (80 * 4096, 320)
    assert read["lat_ns"]["mean"] == pytest.approx(statistics.fmean(LATENCIES_NS))
    assert read["lat_ns"]["stddev"] == pytest.approx(statistics.pstdev(LATENCIES_NS), rel=0.01)
    assert (read["lat_ns"]["min"], read["lat_ns"]["max"], read["lat_ns"]["N"]) == (800, 2_500_000_000, 160)
    assert read["clat_ns"]["percentile"]["50.000000"] == pytest.approx(150_000, rel=0.01)
    # As in fio a percentile is that of its rank, and N says of how many.
    assert read["clat_ns"]["percentile"]["99.990000"] == pytest.approx(2.5e9, rel=0.01)
    assert len(read["clat_ns"]["percentile"]) == 17
    assert (read["iops_min"], read["iops_max"], read["iops_mean"], read["iops_samples"]) == (70, 90, 80.0, 2)
    assert read["iops_stddev"] == pytest.approx(statistics.stdev([70, 90]))
    assert (job["usr_cpu"], job["sys_cpu"]) == (25.0, 50.0)
    assert (job["ctx"], job["majf"], job["minf"]) == (6, 4, 2)
    assert (job["write"]["total_ios"], job["write"]["lat_ns"]["N"], job["trim"]["total_ios"]) == (0, 0, 0)
    options = job["job options"]
    assert {name: options[name] for name in ("name", "rw", "iodepth", "numjobs", "bs", "runtime")} == {
        "name": "night",
        "rw": "randread",
        "iodepth": "8",
        "numjobs": "1",
        "bs": "4k",
        "runtime": "4s",
    }


def test_means_are_over_the_time_and_not_over_the_intervals() -> None:
    """A last interval of 50 ms counts as 50 ms: it was 11 to 18 % too low in runs of 3 s."""
    intervals = [interval(0, 1.0, 100), interval(0, 2.0, 100), interval(0, 2.05, 1, 0.05)]
    (setting,) = settings_of(run(Knobs(8)), intervals)
    read = only_job(setting)["read"]
    assert read["iops_mean"] == pytest.approx(201 / 2.05)
    assert (read["iops_samples"], read["iops_min"], read["iops_max"]) == (2, 96, 100)
    assert read["bw_mean"] == pytest.approx(201 * 4 / 2.05)
    alone = joined(intervals[2:])
    assert (alone, joined([])) == (tuple(intervals[2:]), ())
    turned = [interval(0, 1.0, 9), interval(1, 1.05, 1, 0.05), interval(1, 2.05, 9)]
    assert [(each.epoch, each.read.ios) for each in joined(turned)] == [(0, 9), (1, 10)]


def test_buckets_have_the_names_and_the_order_of_fio() -> None:
    """Values of plat_idx_to_val in fio's stat.c for some indices, the last of all among them."""
    assert list(bins({0: 1, 127: 2, 128: 3, 191: 4, 192: 5, 1855: 6, 1900: 7})) == [
        *("0", "127", "129", "255", "258", "17112760320"),
    ]
    assert bins({1855: 6, 1900: 7})["17112760320"] == 13
    found = only_job(settings_of(run(Knobs(8)), [interval(0, 1.0, 9)])[0])["read"]
    assert sum(found["clat_ns"]["bins"].values()) == found["clat_ns"]["N"] == 160
    assert "bins" not in found["slat_ns"]


def test_histograms_by_interval_are_lines_of_all_buckets(tmp_path: Path) -> None:
    intervals = [interval(0, end_s, ios) for end_s, ios in ((1.0, 50), (2.0, 0), (3.0, 7))]
    write_results(tmp_path, [FioRun(run(Knobs(1)), intervals)])
    lines = (tmp_path / "randread-iodepth-1-numjobs-1_clat_hist.1.log").read_text().splitlines()
    rows = [[int(cell) for cell in line.split(", ")] for line in lines]
    assert [row[:3] for row in rows] == [[1000, 0, 4096], [2000, 0, 4096], [3000, 0, 4096]]
    assert {len(row) for row in rows} == {3 + 1856}
    assert [row[3 + bucket_of(50_000)] for row in rows] == [50, 0, 7]


def test_the_depth_is_that_of_a_closed_loop_or_not_known() -> None:
    job = only_job(settings_of(run(Knobs(48)), [interval(0, 1.0, 9)])[0])
    assert {depth: share for depth, share in job["iodepth_level"].items() if share} == {"32": 100.0}
    paced = only_job(settings_of(run(replace(Knobs(48), rate_iops=5.0)), [interval(0, 1.0, 9)])[0])
    assert set(paced["iodepth_level"].values()) == {0.0}


def test_what_fio_cannot_say_is_left_out_of_the_options() -> None:
    job = replace(JOB, arrival=Arrival.CONSTANT)
    (setting,) = settings_of(run(replace(Knobs(8), rate_iops=5.0, read_pct=30.0), job=job), [interval(0, 1.0, 9)])
    document = only_job(setting)
    assert document["job options"]["rwmixread"] == "30"
    assert document["job options"]["rw"] == "randrw"


def test_shares_of_latencies_are_by_the_upper_end() -> None:
    shares: dict[str, Any] = latency_shares(run(Knobs()).total.total)
    one = 100 / len(LATENCIES_NS)
    filled = {(table, step): share for table, steps in shares.items() for step, share in steps.items() if share}
    assert filled == {
        ("latency_ns", "1000"): one,
        ("latency_us", "2"): one,
        ("latency_us", "100"): one,
        ("latency_us", "250"): 2 * one,
        ("latency_ms", "4"): one,
        ("latency_ms", "50"): one,
        ("latency_ms", ">=2000"): one,
    }
    assert list(shares["latency_us"]) == ["2", "4", "10", "20", "50", "100", "250", "500", "750", "1000"]


def test_shares_between_latencies() -> None:
    measured = run(Knobs()).total.total
    assert share_between(measured, 90_500, 1e6) == pytest.approx(25)


def test_equal_knobs_are_one_file_and_others_have_their_own(tmp_path: Path) -> None:
    result = run(Knobs(1), Knobs(8), Knobs(1))
    intervals = [interval(index, end_s, 50) for end_s, index in enumerate((0, 0, 1, 1, 2), 1)]
    assert write_results(tmp_path, [FioRun(result, intervals)]) == []
    documents = {path.name: json.loads(path.read_text()) for path in tmp_path.glob("*.json")}
    assert {name: one["jobs"][0]["read"]["total_ios"] for name, one in documents.items()} == {
        "randread-1-1.json": 320,
        "randread-8-1.json": 160,
    }
    log = (tmp_path / "randread-iodepth-1-numjobs-1_bw.1.log").read_text()
    assert log == "1000, 200, 0, 0, 0\n2000, 200, 0, 0, 0\n5000, 200, 0, 0, 0\n"
    assert (tmp_path / "randread-iodepth-8-numjobs-1_lat.1.log").read_text().startswith("1000, 50000, 0, 0, 0\n")


def test_an_interval_without_ios_is_a_rate_of_0_and_has_no_latency(tmp_path: Path) -> None:
    intervals = [interval(0, end_s, ios) for end_s, ios in ((1.0, 50), (2.0, 0), (3.0, 50))]
    write_results(tmp_path, [FioRun(run(Knobs(1)), intervals)])
    logs = {what: (tmp_path / f"randread-iodepth-1-numjobs-1_{what}.1.log").read_text() for what in ("iops", "lat")}
    assert logs["iops"] == "1000, 50, 0, 0, 0\n2000, 0, 0, 0, 0\n3000, 50, 0, 0, 0\n"
    assert logs["lat"] == "1000, 50000, 0, 0, 0\n3000, 50000, 0, 0, 0\n"


def test_knobs_that_share_a_name_have_folders(tmp_path: Path) -> None:
    result = run(Knobs(4), replace(Knobs(4), blocks=(BlockShare(8192),)), Knobs(9))
    missing = write_results(tmp_path, [FioRun(result, [interval(0, 1.0, 5), interval(1, 2.0, 5)])])
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")) == [
        "randread-9-1.json",
        "run-1/randread-4-1.json",
        "run-2/randread-4-1.json",
    ]
    assert [line.partition(": shorter than two samples")[0] for line in missing] == [
        f"--fio-json: randread-{depth}-1.json" for depth in (4, 4, 9)
    ]


def test_a_folder_with_results_of_that_name_is_refused_before_the_run(tmp_path: Path) -> None:
    scenario = Scenario(JOB, (Turn(1.0, (("queue_depth", 8),)),))
    make_folder(tmp_path / "new" / "folder", [scenario])
    (tmp_path / "randread-2-1.json").touch()
    make_folder(tmp_path, [scenario])
    (tmp_path / "randread-8-1.json").touch()
    with pytest.raises(LunscopeError, match=r"has results already: name another folder, or remove randread-8-1\.json"):
        make_folder(tmp_path, [scenario])
    with pytest.raises(LunscopeError, match="File exists"):
        make_folder(tmp_path / "randread-8-1.json", [scenario])
    make_folder(tmp_path, [Scenario(replace(JOB, access=Access.SEQUENTIAL))])


def step(before_s: float, after_s: float, before: dict[str, int], after: dict[str, int], names: str = "x") -> Step:
    who = raw_samples.rows(*names)
    return Step(
        raw_samples.sample(before_s, load=raw_samples.load(who, *[before] * len(names))),
        raw_samples.sample(after_s, load=raw_samples.load(who, *[after] * len(names))),
    )


def test_a_series_keeps_what_lies_within_one_epoch() -> None:
    series = LoadSeries()
    samples = [
        (1.0, {"read_ios": 10}),
        (2.0, {"read_ios": 30, "read_bytes": 4096, "read_latency_ns": 7, "write_ios": 1}),
        (3.0, {"read_ios": 40, "epoch": 1}),
        (3.5, {"read_ios": 45, "epoch": 1}),
    ]
    for at_s, row in samples:
        series.observe(step(at_s - 1, at_s, {}, row, "xy"))
    first, second = series.between(0, 4 * raw_samples.SECOND_NS)
    assert (first.epoch, first.end_s, first.length_s) == (0, 1.0, 1.0)
    assert (first.read, first.write) == (DirectionDelta(40, 8192, 14), DirectionDelta(2, 0, 0))
    assert (second.epoch, second.end_s, second.length_s, second.read.ios) == (1, 2.5, 0.5, 10)
    assert first.used.user_s >= 0


def test_a_new_load_begins_a_new_series() -> None:
    series = LoadSeries()
    for at_s in (1.0, 2.0):
        series.observe(step(at_s - 1, at_s, {}, {"read_ios": round(at_s)}))
    series.observe(Step(None, raw_samples.sample(3.0)))
    assert len(series.between(0, 10 * raw_samples.SECOND_NS)) == 1
    for at_s in (8.0, 9.0, 10.0):
        series.observe(step(at_s - 1, at_s, {}, {"read_ios": round(at_s)}, "z"))
    assert [each.end_s for each in series.between(0, 10 * raw_samples.SECOND_NS)] == [1.0, 2.0]


def test_the_last_interval_ends_with_the_load() -> None:
    series = LoadSeries()
    for at_s, ios in ((1.0, 100), (2.0, 200), (3.5, 300)):
        series.observe(step(at_s - 1, at_s, {}, {"read_ios": ios}))
    first, last = series.between(0, 3 * raw_samples.SECOND_NS)
    assert (first.end_s, first.length_s, first.read.ios) == (1.0, 1.0, 100)
    assert (last.end_s, last.length_s, last.read.ios) == (2.0, 1.0, 100)


def test_the_first_interval_begins_with_the_load() -> None:
    """Histograms are read after the counters: what completes meanwhile is in the histogram of the first sample."""
    series = LoadSeries()
    for at_s, ios in ((1.0, 100), (2.0, 300)):
        series.observe(step(at_s - 1, at_s, {}, {"read_ios": ios}))
    first, last = series.between(round(0.6 * raw_samples.SECOND_NS), 2 * raw_samples.SECOND_NS)
    assert (first.epoch, first.end_s, first.read.ios) == (0, 0.0, 100)
    assert first.length_s == pytest.approx(0.4)
    assert (last.length_s, last.read.ios) == (1.0, 200)


def test_each_of_several_loads_has_its_series_until_it_ends() -> None:
    each = {name: LoadSeries(load=name) for name in "ab"}
    who = raw_samples.rows("[a] /dev/x", "[b] /dev/y")
    for at_s, a_ios, b_is_active in ((1.0, 10, 1), (2.0, 30, 1), (3.0, 70, 0)):
        rows = ({"read_ios": a_ios, "active": 1}, {"read_ios": 5 * min(round(at_s), 2), "active": b_is_active})
        sample = raw_samples.sample(at_s, load=raw_samples.load(who, *rows))
        for series in each.values():
            series.observe(Step(None, sample))
    found = {
        name: [one.read.ios for one in series.between(0, 9 * raw_samples.SECOND_NS)] for name, series in each.items()
    }
    assert found == {"a": [20, 40], "b": [5]}
