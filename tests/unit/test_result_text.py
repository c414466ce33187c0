from __future__ import annotations

import pytest

from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.results.badge import percent_text
from engine.results.caveats import caveats, run_badges
from engine.results.cpu_use import CpuUse
from engine.results.result import About, EngineFacts, FsyncResult, RunResult
from engine.results.result_text import _three_digits, summary_lines
from tests.unit.synthetic import Io, epoch
from tests.unit.test_result import result_of, two_epochs


def one_epoch(latency_ns: int = 100_000, ios: int = 2000, duration_s: float = 2.0) -> RunResult:
    stats = epoch([Io(latency_ns=latency_ns, at_s=number / 1000) for number in range(ios)], duration_s=duration_s)
    return result_of([stats], JobSpec(targets=(TargetSpec("/dev/loop7"),)), ("/dev/loop7",))


def test_figures_carry_their_units() -> None:
    lines = summary_lines(one_epoch())
    assert lines[0] == "random, direct, 4k, read, QD 1, stripe width 1; uring engine (the fastest, and it works here)"
    assert lines[2] == "ran 4.5 s (runtime over), measured 2.0 s: 2,000 reads"
    assert lines[4].split() == ["IOPS", "MiB/s", "mean", "us", "p50", "p90", "p99", "p99.9", "max", "avg", "peak"]
    assert lines[5].split() == ["read", "1,000", "3.9", *["100.0"] * 7]


def test_slow_storage_is_reported_in_milliseconds() -> None:
    lines = summary_lines(one_epoch(latency_ns=20_000_000))
    assert "mean ms" in lines[4]
    assert lines[5].split()[3] == "20.0"


def test_too_few_ios_for_a_percentile_print_a_dash() -> None:
    lines = summary_lines(one_epoch(ios=50))
    assert lines[5].split()[6:8] == ["-", "-"]
    assert any(line.startswith("badge: a - stands for") for line in lines)


def test_epochs_errors_and_what_never_settled_are_reported() -> None:
    text = "\n".join(summary_lines(two_epochs()))
    assert "epoch 0, 2.0 s: 4k:60,16k:40, 99.5 % read, QD 8, stripe width 1" in text
    assert "note: epoch 1 too short: 4 I/Os excluded" in text
    assert "error: /dev/loop7: 3 reads failed: EIO Input/output error, first at offset 8192" in text
    assert "error: /dev/loop7: 1 write failed: short: fewer bytes were moved than asked for" in text


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
    (line,) = (line for line in summary_lines(missed) if line.startswith("cpu"))
    assert "; host at least " in line
    assert line.endswith(", 10 % busy")
    seen = replace(one_epoch(), epochs=(replace(epoch, cpu=CpuUse(400_000_000, 500_000_000, 4_000_000_000)),))
    (line,) = (line for line in summary_lines(seen) if line.startswith("cpu"))
    assert "at least" not in line


def test_few_and_short_are_reported() -> None:
    assert badge_labels(one_epoch(ios=999)) == ["few samples"]
    assert badge_labels(one_epoch(ios=2000, duration_s=0.9)) == ["short"]
    lines = summary_lines(one_epoch(ios=10, duration_s=0.4))
    assert "badge: measured for 0.40 s only: too short to judge by" in lines
    assert "badge: /dev/loop7: 75 % never written: reads of it are memory" in lines


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
    assert any(line.split()[:2] == ["total", "0"] for line in summary_lines(result))


def test_no_line_of_figures_is_wider_than_a_small_terminal() -> None:
    slow = [Io(latency_ns=9_876_543_210)]
    quick = [Io(latency_ns=100)] * 10_000
    lines = summary_lines(result_of([epoch([*quick, *slow])], JobSpec(), ("a",)))
    assert max(map(len, lines[4:6])) <= 79


def test_cpu_of_engine_and_host_stands_beside_what_it_bought() -> None:
    lines = summary_lines(one_epoch(ios=201))
    assert "cpu  engine 2.00 us/IO, 0.488 s/GB; host 6.00 us/IO, 1.46 s/GB, 0 % busy" in lines


def test_cpu_of_slow_storage_has_no_exponent() -> None:
    assert [_three_digits(value) for value in (0.488, 31.0, 1690.0, None)] == ["0.488", "31", "1,690", "-"]


def test_fsyncs_are_listed_apart_from_writes() -> None:
    assert not any(line.startswith("sync") for line in summary_lines(one_epoch()))
    flushed = replace(one_epoch().epochs[0], fsyncs=FsyncResult(200, 0, 400_000_000, 9_000_000))
    lines = summary_lines(replace(one_epoch(), epochs=(flushed,)))
    assert "sync 200 fsyncs, mean 2,000 us, max 9,000 us" in lines


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0"), (0.0004, "< 0.1"), (0.005, "0.5"), (0.5, "50"), (0.9949, "99.5"), (0.99999, "> 99.9"), (1.0, "100")],
)
def test_a_share_is_never_rounded_to_nothing_or_all(share: float, words: str) -> None:
    assert percent_text(share) == words
