from __future__ import annotations

import pytest

from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.results.badge import percent_text
from engine.results.caveats import caveats, run_badges
from engine.results.cpu_use import CpuUse
from engine.results.result import About, EngineFacts, FsyncResult, RunResult
from tests.unit.documents.printed import run_text, unwrapped
from tests.unit.synthetic import Io, epoch
from tests.unit.test_result import result_of, two_epochs


def one_epoch(latency_ns: int = 100_000, ios: int = 2000, duration_s: float = 2.0) -> RunResult:
    stats = epoch([Io(latency_ns=latency_ns, at_s=number / 1000) for number in range(ios)], duration_s=duration_s)
    return result_of([stats], JobSpec(targets=(TargetSpec("/dev/loop7"),)), ("/dev/loop7",))


def row_of(result: RunResult, name: str) -> list[str]:
    """The cells of a row of the first table."""
    return next(line.split() for line in run_text(result).splitlines() if line.split()[:1] == [name])


def test_figures_carry_their_units() -> None:
    text = run_text(one_epoch())
    words = "random, direct, 4k, read, QD 1, stripe width 1; uring engine (the fastest, and it works here)"
    assert f"load {words} on /dev/loop7 ran 4.5 s (runtime over), measured 2.0 s" in unwrapped(text)
    assert "1,000.0 IOPS and 4.1 MB/s at 0.100 ms mean latency, p99 0.100 ms." in text
    units = next(line.split() for line in text.splitlines() if "MB/s" in line and "1/s" in line)
    assert units == ["1/s", "MB/s", *["ms"] * 7]
    assert row_of(one_epoch(), "reads") == ["reads", "2,000", "1,000.0", "4.1", *["0.100"] * 7]


def test_latencies_of_quick_storage_have_a_tenth_of_a_microsecond() -> None:
    assert row_of(one_epoch(latency_ns=8_000), "reads")[4] == "0.0080"
    assert row_of(one_epoch(latency_ns=20_000_000), "reads")[4] == "20.000"


def test_too_few_ios_for_a_percentile_print_a_dash() -> None:
    assert row_of(one_epoch(ios=50), "reads")[7:9] == ["-", "-"]
    assert ": a - stands for" in unwrapped(run_text(one_epoch(ios=50)))


def test_epochs_errors_and_what_never_settled_are_reported() -> None:
    text = unwrapped(run_text(two_epochs()))
    assert "[Epochs]" in text
    assert "- epoch 1 too short: 4 I/Os excluded" in text
    assert "- error: /dev/loop7: 3 reads failed: EIO Input/output error, first at offset 8192" in text
    assert "- error: /dev/loop7: 1 write failed: short: fewer bytes were moved than asked for" in text


def badge_labels(result: RunResult) -> list[str]:
    return [badge.label for badge in run_badges(result)][1:]


def costing(result: RunResult, busy_share: float, threads: int = 1) -> RunResult:
    (epoch,) = result.epochs
    cpu = CpuUse(int(busy_share * epoch.duration_s * 1e9), 0, 0)
    return replace(result, epochs=(replace(epoch, cpu=cpu, knobs=Knobs(threads=threads)),))


def test_a_busy_engine_is_called_driver_bound() -> None:
    assert badge_labels(costing(one_epoch(), 0.5)) == []
    busy = costing(one_epoch(), 0.95)
    assert badge_labels(busy) == ["driver-bound"]
    assert (
        "95 % of the time with 1 thread; the storage may be faster than shown: try --threads 2"
        in run_badges(busy)[1].text
    )
    assert badge_labels(costing(one_epoch(), 0.95, threads=2)) == []
    synchronous = replace(busy.about, engine=EngineFacts("threads", "asked for", ()))
    assert badge_labels(replace(busy, about=synchronous)) == []


def test_a_busy_host_is_reported() -> None:
    (epoch,) = one_epoch().epochs
    full = replace(epoch, cpu=CpuUse(0, 980, 1000))
    assert badge_labels(replace(one_epoch(), epochs=(full,))) == ["host busy 98 %"]
    waited = replace(full, cpu=CpuUse(0, 980, 1000, int(0.2 * epoch.duration_s * 1e9)))
    assert badge_labels(replace(one_epoch(), epochs=(waited,))) == ["waited for CPU 20 %"]


def test_a_host_counted_by_the_tick_used_at_least_what_the_engine_did() -> None:
    (epoch,) = one_epoch().epochs
    missed = replace(one_epoch(), epochs=(replace(epoch, cpu=CpuUse(400_000_000, 100_000_000, 4_000_000_000)),))
    (line,) = (line for line in run_text(missed).splitlines() if line.startswith("CPU of the host"))
    assert "  at least " in line
    assert line.endswith(", 10 % busy")
    seen = replace(one_epoch(), epochs=(replace(epoch, cpu=CpuUse(400_000_000, 500_000_000, 4_000_000_000)),))
    assert "at least" not in run_text(seen)


def test_few_and_short_are_reported() -> None:
    assert badge_labels(one_epoch(ios=999)) == ["few samples"]
    assert badge_labels(one_epoch(ios=2000, duration_s=0.9)) == ["short"]
    text = unwrapped(run_text(one_epoch(ios=10, duration_s=0.4)))
    assert ": measured for 0.40 s only: too short to judge by" in text
    assert ": /dev/loop7: 75 % never written: reads of it are memory" in text


def test_blocks_that_were_split_over_the_stripe_are_reported() -> None:
    def notes(knobs: Knobs) -> list[str]:
        job = JobSpec(targets=(TargetSpec(),) * 2, knobs=knobs)
        return caveats(result_of([epoch([Io()], knobs=knobs, targets=2)], job, ("a", "b")))

    split, whole, single = (BlockShare(131072),), (BlockShare(65536),), (BlockShare(98304),)
    assert any("were split" in line for line in notes(Knobs(stripe_width=2, blocks=split)))
    assert any("were split" in line for line in notes(Knobs(stripe_width=2, blocks=single)))
    assert not any("were split" in line for line in notes(Knobs(stripe_width=2, blocks=whole)))
    assert not any("were split" in line for line in notes(Knobs(stripe_width=1, blocks=split)))


def test_a_run_without_any_io_has_a_summary() -> None:
    about = About(JobSpec(knobs=Knobs(read_pct=70)), EngineFacts("", "not started", ()), (), (), (), "stopped", 0.0)
    result = replace(result_of([epoch([])], JobSpec(), ("a",)), about=about)
    assert row_of(result, "total")[:2] == ["total", "0"]


def test_cpu_of_engine_and_host_stands_beside_what_it_bought() -> None:
    lines = run_text(one_epoch(ios=201)).splitlines()
    assert "CPU of the engine  2.00 us/IO, 0.488 s/GB" in lines
    assert "CPU of the host    6.00 us/IO, 1.46 s/GB, 0 % busy" in lines


def test_fsyncs_are_listed_apart_from_writes() -> None:
    assert "fsyncs" not in run_text(one_epoch())
    flushed = replace(one_epoch().epochs[0], fsyncs=FsyncResult(200, 0, 400_000_000, 9_000_000))
    assert "200 fsyncs, mean 2,000 us, max 9,000 us" in run_text(replace(one_epoch(), epochs=(flushed,)))


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0"), (0.0004, "< 0.1"), (0.005, "0.5"), (0.5, "50"), (0.9949, "99.5"), (0.99999, "> 99.9"), (1.0, "100")],
)
def test_a_share_is_never_rounded_to_nothing_or_all(share: float, words: str) -> None:
    assert percent_text(share) == words
