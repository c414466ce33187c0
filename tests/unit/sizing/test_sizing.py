"""How many disks a need takes, of disks whose law says what is right."""

from __future__ import annotations

import re

import pytest

from engine.errors import UsageError
from engine.replacing import replace
from engine.sizing.need import Need
from engine.sizing.size import SizeVerdict, Sizing, size_load
from tests.unit.sizing.disk_law import DiskLaw

WIDTHS = (1, 2, 4, 8)
ONE_DISK = 24_000.0
"""IOPS of a disk of the usual law: 12 servers of 0.5 ms."""


def _size(law: DiskLaw, need: str, widths: tuple[int, ...] = WIDTHS, noise: float = 0.01, seed: int = 1) -> Sizing:
    return size_load(law.measured(widths, noise, seed), Need.parse(need))


def _judge(law: DiskLaw, found: Sizing, iops: float, p99_s: float) -> None:
    """The answer is that of the law, for a need that differs by 5 % at most."""
    size = found.size
    assert size is not None, found.words
    fewest, most = law.true_size(0.95 * iops, p99_s * 1.05), law.true_size(1.05 * iops, p99_s * 0.95)
    assert fewest is not None
    assert most is not None
    assert fewest[0] <= size.disks <= most[0], found.words
    assert size.low <= size.disks
    assert size.high is None or size.disks <= size.high
    assert size.iops == pytest.approx(law.iops(size.disks, size.depth), rel=0.05)
    assert size.iops >= iops * 0.999
    assert law.p99_times * law.mean_s(size.disks, size.depth) <= p99_s * 1.05
    assert size.latencies_ns["p99"] == pytest.approx(1e9 * law.p99_times * law.mean_s(size.disks, size.depth), rel=0.05)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("servers", [1, 5, 12, 24])
@pytest.mark.parametrize("share", [0.35, 1.7, 3.4, 6.3, 7.7])
def test_answers_are_those_of_the_law(share: float, servers: int, seed: int) -> None:
    law = DiskLaw(servers)
    iops = share * servers / law.service_s
    found = _size(law, f"{iops:.0f} IOPS, p99<2.6ms", seed=seed)
    assert found.verdict is SizeVerdict.FOUND
    _judge(law, found, iops, 0.0026)


@pytest.mark.parametrize("seed", range(3))
def test_a_port_that_all_disks_share_is_seen_between_the_numbers_that_were_measured(seed: int) -> None:
    law = DiskLaw(port_iops=6 * ONE_DISK)
    for share in (3.3, 4.6, 5.4):
        found = _size(law, f"{share * ONE_DISK:.0f} IOPS, p99<4ms", seed=seed)
        assert found.verdict is SizeVerdict.FOUND
        _judge(law, found, share * ONE_DISK, 0.004)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("share", [8.9, 11.6, 15.3])
def test_up_to_twice_the_disks_are_extrapolated(share: float, seed: int) -> None:
    law = DiskLaw()
    found = _size(law, f"{share * ONE_DISK:.0f} IOPS, p99<2.6ms", seed=seed)
    assert found.verdict is SizeVerdict.EXTRAPOLATED
    assert found.words.startswith("about ")
    assert "that were measured: a limit of port, link or array in between would not be seen" in found.words
    _judge(law, found, share * ONE_DISK, 0.0026)


@pytest.mark.parametrize(("share", "least"), [(17.5, 9), (40.0, 20)])
def test_more_than_twice_is_refused_with_what_to_measure(share: float, least: int) -> None:
    found = _size(DiskLaw(), f"{share * ONE_DISK:.0f} IOPS, p99<2.6ms")
    assert (found.verdict, found.size) == (SizeVerdict.BEYOND, None)
    assert "more than 2 times the disks that were measured would be a guess" in found.words
    measured = int(found.words.rpartition("Measure ")[2].split()[0])
    assert measured == pytest.approx(least, abs=1)
    again = _size(DiskLaw(), f"{share * ONE_DISK:.0f} IOPS, p99<2.6ms", widths=(1, measured // 2, measured))
    assert again.verdict is SizeVerdict.EXTRAPOLATED


def test_a_need_far_beyond_has_plain_numbers() -> None:
    words = _size(DiskLaw(), "999M IOPS").words
    assert re.search(r"the need is [1-9][0-9]{0,2}(,[0-9]{3})+ times that", words)
    assert re.search(r"Measure [1-9][0-9]{0,2}(,[0-9]{3})+ disks or more", words)


@pytest.mark.parametrize("seed", range(3))
def test_what_no_number_of_disks_does_is_refused_with_the_reason(seed: int) -> None:
    slow = _size(DiskLaw(), "1k IOPS, p99<1.4ms", seed=seed)
    assert (slow.verdict, slow.size) == (SizeVerdict.IMPOSSIBLE, None)
    assert re.match(r"not possible: p99 is 1\.[45]\d? ms on 1 disk at qd=1; more disks do not shorten", slow.words)
    full = _size(DiskLaw(port_iops=3 * ONE_DISK), f"{5 * ONE_DISK:.0f} IOPS", seed=seed)
    assert (full.verdict, full.size) == (SizeVerdict.IMPOSSIBLE, None)
    assert full.words.endswith("at most, and more disks add nothing")


def test_what_was_not_measured_is_not_known() -> None:
    single = _size(DiskLaw(), "60k IOPS", widths=(1,))
    assert single.verdict is SizeVerdict.UNKNOWN
    assert "how more disks scale was not measured: vary stripe_width" in single.words
    assert _size(DiskLaw(), "20k IOPS", widths=(1,)).verdict is SizeVerdict.FOUND
    noisy = _size(DiskLaw(), "20k IOPS", noise=0.6)
    assert noisy.verdict is SizeVerdict.UNKNOWN
    assert "too much to see" in noisy.words
    few = size_load(DiskLaw().measured((1, 2)), Need.parse("20k IOPS, p99.9<2ms"))
    assert few.verdict is SizeVerdict.UNKNOWN
    assert "too few I/Os for p99.9" in few.words
    deep = size_load(DiskLaw().measured((1, 2), loads=(16, 32, 64, 128)), Need.parse("1k IOPS, p99<1.6ms"))
    assert deep.verdict is SizeVerdict.UNKNOWN
    assert "measure 1 disk from qd=1 on" in deep.words


def test_a_depth_of_all_disks_together_is_not_taken_for_that_of_each() -> None:
    load = DiskLaw().measured((1, 2, 4), noise=0.0)
    together = tuple(
        (disks, tuple(replace(trial, in_flight=trial.in_flight / disks) for trial in trials))
        for disks, trials in load.widths
    )
    found = size_load(replace(load, widths=together), Need.parse("30k IOPS"))
    assert found.verdict is SizeVerdict.UNKNOWN
    assert [width.problem[21:26].strip() for width in found.widths] == ["", "50 %", "25 %"]


def test_more_disks_that_break_a_limit_end_the_scale() -> None:
    law = DiskLaw(servers=1, port_iops=4000)
    broken = _size(law, "3.9k IOPS, p99<2ms", widths=(1, 2, 8), noise=0.0)
    assert (broken.verdict, "on 8 disks p99 is 6 ms at qd=1 already" in broken.words) == (SizeVerdict.FOUND, False)
    more = _size(law, "20k IOPS, p99<2ms", widths=(1, 2, 8), noise=0.0)
    assert (more.verdict, "on 8 disks p99 is 6 ms at qd=1 already" in more.words) == (SizeVerdict.IMPOSSIBLE, True)


def test_bytes_are_iops_of_the_blocks_that_were_measured() -> None:
    found = _size(DiskLaw(), "0.5 GB/s", noise=0.0)
    assert found.size is not None
    assert found.size.disks == DiskLaw().true_size(0.5e9 / 8192)[0]  # type: ignore[index]
    assert "MB/s" in found.words
    both = _size(DiskLaw(), "1k IOPS, 0.5 GB/s", noise=0.0)
    assert both.size == found.size


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("300k IOPS, p99<2ms", "300k IOPS, p99<=2ms"),
        ("300000 iops,p99<=2ms,mean<500us", "300k IOPS, p99<=2ms, mean<=500us"),
        ("1.5M IOPS", "1500k IOPS"),
        ("2m IOPS", "2M IOPS"),
        ("3K IOPS", "3k IOPS"),
        ("2 GB/s, max < 1s", "2 GB/s, max<=1s"),
        ("2 GiB/s", "2 GiB/s"),
        ("1234567.5 B/s", "1234567.5 B/s"),
    ],
)
def test_needs_are_read_and_written(text: str, shown: str) -> None:
    need = Need.parse(text)
    assert need.text == shown
    assert Need.parse(need.text) == need


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "'' is neither a throughput nor a limit: write it like '300k IOPS, p99<2ms'"),
        ("p99<2ms", "names no throughput"),
        ("300,000 IOPS", "'300' is neither"),
        ("2 Gb/s", "is neither"),
        ("1k IOPS, 2k IOPS", "says something twice"),
        ("1k IOPS, p99<2ms, p99<3ms", "says something twice"),
        ("0 IOPS", "a throughput is at least 1"),
        ("1k IOPS, p98<2ms", "is not a limit"),
        ("inf IOPS", "is neither"),
    ],
)
def test_what_is_no_need_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        Need.parse(text)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)
