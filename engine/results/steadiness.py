"""Whether a load had reached a steady state, and whether it got slower: values, badges and their JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct, field

from engine.job.sizes import format_duration
from engine.job.spec import Access, Arrival, JobSpec, Knobs
from engine.results.badge import Badge, BadgeKind
from engine.statistics.decline import Decline
from engine.statistics.steady_state import MOST_EXCURSION, MOST_SLOPE, WINDOW_ROUNDS, SteadyState, SteadyWindow
from engine.strict_json import rounded

_MIB = 1 << 20


class SteadyFigure(StrEnum):
    """Which figure of a load is judged; the value is the id in documents."""

    IOPS = "iops"
    THROUGHPUT = "bytes_per_s"
    LATENCY = "latency_us"
    """Mean latency."""


_NAMES = {SteadyFigure.IOPS: "IOPS", SteadyFigure.THROUGHPUT: "throughput", SteadyFigure.LATENCY: "mean latency"}


def figure_of(job: JobSpec, knobs: Knobs) -> SteadyFigure:
    """Choose what may vary: latency where a rate is set, else throughput of sequential and IOPS of random I/Os."""
    if job.arrival is not Arrival.CLOSED or knobs.rate_iops is not None:
        return SteadyFigure.LATENCY
    return SteadyFigure.THROUGHPUT if job.access is Access.SEQUENTIAL else SteadyFigure.IOPS


class Steadiness(Struct, frozen=True):
    """What the rounds of an epoch say."""

    figure: SteadyFigure
    directions: tuple[str, ...]
    """`read` and `write`, in the order of the windows; all must be steady."""
    round_s: float
    state: SteadyState = field(default_factory=SteadyState)
    decline: Decline | None = None
    """Decline over all I/Os; latencies count as their reciprocals, so that a fall is worse for every figure."""

    @property
    def fell_share(self) -> float:
        """Share of the first by which the figure changed for the worse; NaN if it did not."""
        if self.decline is None:
            return math.nan
        is_latency = self.figure is SteadyFigure.LATENCY
        return self.decline.first / self.decline.last - 1 if is_latency else self.decline.share


def steady_badges(found: Steadiness, job: JobSpec, *, wanted: bool, epochs: int = 1) -> Iterator[Badge]:
    """Say what was found; of a run that was too short only if it is `wanted`."""
    state = found.state
    if state.is_checked:
        yield _checked(found)
    elif wanted or job.until_steady:
        rounds = f"{WINDOW_ROUNDS} rounds of {format_duration(found.round_s)} (--steady-round)"
        text = f"steady state (SNIA) not checked: too short: it takes {rounds}, and {state.rounds} are complete"
        yield Badge(BadgeKind.STEADY_STATE, "steady: not checked", text)
    if found.decline is not None:
        yield _slower(found, "run" if epochs == 1 else "last epoch")


def _checked(found: Steadiness) -> Badge:
    state, length = found.state, format_duration(found.round_s)
    window = f"over the last {WINDOW_ROUNDS} rounds of {length} {_windows(found)}"
    limits = f"limits {100 * MOST_EXCURSION:g} and {100 * MOST_SLOPE:g} %"
    if state.steady_from is not None:
        text = f"steady state (SNIA) reached at round {state.steady_from} of {state.rounds}: {window} ({limits})"
        return Badge(BadgeKind.STEADY_STATE, f"steady at round {state.steady_from}", text)
    if state.lost_at is not None:
        text = f"steady state (SNIA) lost again at round {state.lost_at} of {state.rounds}: {window} ({limits})"
        return Badge(BadgeKind.STEADY_STATE, "not steady", text)
    text = f"steady state (SNIA) not reached in {state.rounds} rounds: {window} ({limits})"
    return Badge(BadgeKind.STEADY_STATE, "not steady", text)


def _windows(found: Steadiness) -> str:
    pairs = zip(found.directions, found.state.windows, strict=True)
    several = len(found.directions) > 1
    return ", ".join(
        f"{_NAMES[found.figure]}{f' of {direction}s' if several else ''} {_window(each)}" for direction, each in pairs
    )


def _window(window: SteadyWindow) -> str:
    if math.isnan(window.excursion):
        return "had rounds without I/O"
    return f"varied by {100 * window.excursion:.1f} % with a trend of {100 * window.slope:+.1f} %"


def _slower(found: Steadiness, what: str) -> Badge:
    assert found.decline is not None
    percent = 100 * found.fell_share
    change = "rose" if found.figure is SteadyFigure.LATENCY else "fell"
    first, last = (_amount(found.figure, value) for value in (found.decline.first, found.decline.last))
    text = (
        f"slower over time: {_NAMES[found.figure]} {change} {percent:.0f} % from the first to the last fifth of the "
        f"{what}, from {first} to {last}: no mean of the whole {what} describes it"
    )
    return Badge(BadgeKind.SLOWER, f"slower over time {percent:.0f} %", text)


def _amount(figure: SteadyFigure, value: float) -> str:
    if figure is SteadyFigure.LATENCY:
        return f"{1 / value:,.0f} us"
    return f"{value / _MIB:,.1f} MiB/s" if figure is SteadyFigure.THROUGHPUT else f"{value:,.0f} IOPS"


def steadiness_document(found: Steadiness | None) -> dict[str, object] | None:
    """Write it for JSON; null for a load that was not watched."""
    if found is None:
        return None
    state = found.state
    return {
        "figure": found.figure.value,
        "round_s": found.round_s,
        "rounds": state.rounds,
        "reached": state.is_steady if state.is_checked else None,
        "reached_at_round": state.steady_from,
        "lost_at_round": state.lost_at,
        "windows": [
            {"direction": direction, **_window_document(window)}
            for direction, window in zip(found.directions, state.windows, strict=False)
        ],
        "slower": _slower_document(found),
    }


def _window_document(window: SteadyWindow) -> dict[str, object]:
    return {
        "values": [rounded(value, 3) for value in window.values],
        "excursion_pct": rounded(100 * window.excursion, 3),
        "slope_pct": rounded(100 * window.slope, 3),
    }


def _slower_document(found: Steadiness) -> dict[str, object] | None:
    if found.decline is None:
        return None
    ends = (found.decline.first, found.decline.last)
    first, last = (1 / end if found.figure is SteadyFigure.LATENCY else end for end in ends)
    return {
        "first_fifth": rounded(first, 3),
        "last_fifth": rounded(last, 3),
        "change_pct": rounded(100 * (last / first - 1), 3),
    }
