"""What became of the paths of a run: which failed when, what was sent again, when they answered again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

MOST_LINES = 16


@dataclass(frozen=True, slots=True)
class PathOutcome:
    """One failure of one path; times are right to some 50 ms, which is how often the engine's counters are read."""

    target: str
    path: str
    failed_time_ns: int
    """CLOCK_REALTIME."""
    failed_s: float
    """Since the start of the load."""
    ios_retried: int
    """Attempts that failed on the path. Each was sent again over another path; where none was left the I/O failed, and
    is in the errors of the run as well."""
    returned_time_ns: int | None = None
    """None: the path did not answer again while the load ran."""
    returned_s: float | None = None


def path_outcome_documents(outcomes: Iterable[PathOutcome]) -> list[dict[str, object]]:
    """Write the failures of paths as JSON, the first first."""
    return [
        {
            "target": one.target,
            "path": one.path,
            "failed_at": _iso(one.failed_time_ns),
            "failed_s": round(one.failed_s, 3),
            "ios_retried": one.ios_retried,
            "returned_at": None if one.returned_time_ns is None else _iso(one.returned_time_ns),
            "returned_s": None if one.returned_s is None else round(one.returned_s, 3),
        }
        for one in outcomes
    ]


def path_outcome_lines(outcomes: tuple[PathOutcome, ...]) -> Iterator[str]:
    """Say the same for people, in local time."""
    for one in outcomes[:MOST_LINES]:
        ios = "1 I/O was" if one.ios_retried == 1 else f"{one.ios_retried:,} I/Os were"
        back = "it did not answer again"
        if one.returned_time_ns is not None and one.returned_s is not None:
            back = f"it answered again at {_clock(one.returned_time_ns)}, {one.returned_s - one.failed_s:.1f} s later"
        yield (
            f"path {one.path} of {one.target} failed at {_clock(one.failed_time_ns)}, {one.failed_s:.1f} s after the "
            f"start: {ios} sent again, {back}"
        )
    if len(outcomes) > MOST_LINES:
        yield f"{len(outcomes) - MOST_LINES:,} more failures of paths"


def _iso(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(timespec="milliseconds")


def _clock(time_ns: int) -> str:
    return datetime.fromtimestamp(time_ns / 1e9, UTC).astimezone().strftime("%H:%M:%S")
