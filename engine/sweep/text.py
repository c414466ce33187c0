"""The trials of a load together, and the sentences of a sweep."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from msgspec import Struct

from engine.sweep.busy_host import busy_host_text
from engine.sweep.knee import Answer, LittleCheck
from engine.sweep.optimum import Optimum
from engine.sweep.plan import SweepPlan
from engine.sweep.repeats import Repeats, spread_of
from engine.sweep.trial import Trial


class PointSummary(Struct, frozen=True):
    """All trials of one load together; those with failing targets only where there are no others."""

    load: float
    trials: tuple[Trial, ...]
    repeats: Repeats | None = None
    """Repeats of all loads of the curve."""

    @classmethod
    def of(cls, load: float, trials: Sequence[Trial], repeats: Repeats | None = None) -> PointSummary:
        """Leave out what measured fewer targets."""
        return cls(load, tuple(trial for trial in trials if not trial.failing) or tuple(trials), repeats)

    @property
    def iops(self) -> float:
        """Median, which a stall in one trial does not move."""
        return statistics.median(trial.iops for trial in self.trials)

    @property
    def ios(self) -> int:
        """I/Os of all trials, which the percentiles rest on."""
        return sum(trial.ios for trial in self.trials)

    @property
    def spread(self) -> float:
        """How far its IOPS are certain, as a share of them."""
        return spread_of(self.trials, self.repeats)

    def latency_ms(self, metric: str) -> float | None:
        """Median over the trials in which it is known."""
        known = [value for trial in self.trials if (value := trial.latency_of(metric)) is not None]
        return statistics.median(known) / 1e6 if known else None

    @property
    def notes(self) -> str:
        """What makes the figures less than they seem."""
        notes = ["noisy"] if any(trial.is_noisy for trial in self.trials) else []
        notes += ["short of I/Os"] if any(trial.is_short for trial in self.trials) else []
        notes += sorted({trial.trend.value for trial in self.trials if not trial.is_settled})
        notes += sorted({f"{name} fails" for trial in self.trials for name in trial.failing})
        return ", ".join(notes)


def summaries(trials: Sequence[Trial]) -> list[PointSummary]:
    """Gather trials by load, ascending."""
    loads, repeats = sorted({trial.load for trial in trials}), Repeats.of(trials)
    return [PointSummary.of(load, [trial for trial in trials if trial.load == load], repeats) for load in loads]


def answer_lines(answer: Answer, plan: SweepPlan) -> Iterator[str]:
    """Write what a curve says."""
    yield shape_words(answer)
    knob = "" if plan.load is None else plan.load.knob.key
    named = [("best balance", answer.balance), (answer.highest_name, answer.highest)]
    for limit, optimum in answer.within:
        named.append((f"best with {limit.text}", optimum))
        if optimum is None:
            yield f"  no load keeps {limit.text}"
    for name, optimum in named:
        if optimum is not None:
            yield f"  {name}: {_optimum(knob, optimum)}"
    yield from (f"  {line}" for line in evidence_lines(answer))


def shape_words(answer: Answer) -> str:
    """Words of an answer, with its shape before them unless they begin with it."""
    return answer.words if answer.words.startswith(answer.shape.value) else f"{answer.shape}: {answer.words}"


def _optimum(knob: str, optimum: Optimum) -> str:
    text = f"{knob}={optimum.whole_load}  {optimum.at.iops:,.0f} IOPS at {optimum.at.latency_ns / 1e6:.3f} ms"
    text += f", between {optimum.low:.0f} and {optimum.high:.0f}"
    if optimum.ios is not None:
        text += f", by {optimum.ios:,} I/Os"
    if optimum.is_set_back:
        text += f", set back by {100 * optimum.set_back_share:.0f} % from {optimum.found:.0f} because it is steep there"
    return text


def evidence_lines(answer: Answer) -> Iterator[str]:
    """Say how far the answer is certain, and what else the measurements show."""
    if answer.noise is not None:
        yield f"measurements are noisy, +-{100 * answer.noise:.0f} %: that is how far the IOPS of a load are certain"
    if answer.host_busy_pct is not None:
        yield busy_host_text(answer.host_busy_pct)
    if answer.fit_error is not None:
        ends = [("left", answer.left), ("right", answer.right)]
        inflections = "".join(f", {side} inflection {load:.0f}" for side, load in ends if load is not None)
        yield f"fit error {100 * answer.fit_error:.1f} %{inflections}"
    if answer.servers is not None:
        yield answer.servers.words
    if answer.usl is not None:
        yield f"scalability: {answer.usl.words}"
    if answer.drift is not None and abs(answer.drift) >= 0.02:
        yield f"throughput drifted by {100 * answer.drift:+.0f} % over the sweep, whatever the load; taken out"
    if answer.little is not None:
        yield little_words(answer.little)


def little_words(check: LittleCheck) -> str:
    """Say whether the figures fit each other."""
    if check.holds:
        return f"Little's law holds: I/Os in flight within {100 * abs(check.deviation):.1f} % of IOPS x latency"
    off = f"{100 * check.deviation:+.0f} % off IOPS x latency (Little's law)"
    return f"caution: at {check.load:g} the I/Os in flight are {off}"
