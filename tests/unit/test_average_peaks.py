"""Average peak latency is a mean over seconds, whatever the lines of a report are over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from collectors.model import Step
from collectors.reports.report import ReportOptions, report_text
from tests.unit.test_exact_derive import MS, SDA
from tests.unit.traced_samples import traced_sample

PEAKS_MS = (0, 1, 5, 2, 8)


def steps(seconds_each: int) -> Iterator[Step]:
    samples = [
        traced_sample(
            number * seconds_each,
            SDA,
            {"reads": 100 * number, "service_read_ns": number * MS, "latency_max_ns": peak_ms * MS},
            disks=[{"reads": 100 * number}],
        )
        for number, peak_ms in enumerate(PEAKS_MS)
    ]
    yield Step(None, samples[0])
    yield from (Step(*pair) for pair in pairwise(samples))


def ending(seconds_each: int, interval_s: float | None) -> list[str]:
    lines = list(report_text(steps(seconds_each), ReportOptions(distribution=True, interval_s=interval_s)))
    return lines[-2:]


def test_longer_lines_leave_the_mean_over_seconds() -> None:
    for interval_s in (None, 1.0, 2.0, 4.0):
        assert ending(1, interval_s) == [
            "Average peak latency (mean of the largest of each second):",
            "         sda 4.000 ms",
        ]


def test_what_was_recorded_more_slowly_is_reported_to_be() -> None:
    head, figure = ending(5, None)
    assert head == "Average peak latency (mean of the largest of each 5 seconds):"
    assert figure.split() == ["sda", "4.000", "ms"]
