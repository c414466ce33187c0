"""What throughput over different numbers of hosts says about more of them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.sweep.axes import shown
from engine.sweep.hosts_knob import FleetKnobs
from engine.sweep.runner import SweepResult
from engine.sweep.text import PointSummary
from engine.sweep.trial import Trial

_SCALES = 0.5
"""Share of proportional growth below which more hosts are said not to help: each new host then brings less than half
of what a host brought before."""


class ScalingStep(Struct, frozen=True):
    """One number of hosts with what it gave."""

    hosts: int
    summary: PointSummary
    efficiency: float | None
    """Throughput per host over that of the fewest hosts; None where those had none."""
    gain: float | None
    """Share of proportional growth over the step before; None for the first."""

    @property
    def p99_ms(self) -> float | None:
        """Percentile of all I/Os of all hosts."""
        return self.summary.latency_ms("p99")


class HostScaling(Struct, frozen=True):
    """Numbers of hosts under otherwise equal values."""

    name: str
    """Name of those values, such as "qd=16"; empty without."""
    steps: tuple[ScalingStep, ...]

    @property
    def stops_at(self) -> int | None:
        """Number of hosts beyond which more bring less than half of their part; None if all helped."""
        for before, step in zip(self.steps, self.steps[1:], strict=False):
            if step.gain is not None and step.gain < _SCALES:
                return before.hosts
        return None

    @property
    def words(self) -> str:
        """The answer in one line."""
        first, last = self.steps[0], self.steps[-1]
        if len(self.steps) < 2 or last.efficiency is None:
            return "one number of hosts only: nothing about scaling"
        times = last.efficiency * last.hosts / first.hosts
        grown = f"{last.hosts} hosts do {times:.2f} x {first.hosts}, {100 * last.efficiency:.0f} % per host"
        stop = self.stops_at
        if stop is None:
            return f"scales to {last.hosts} hosts: {grown}"
        after = next(step for step in self.steps if step.hosts > stop)
        assert after.gain is not None
        per_host = f"each host from {stop} to {after.hosts} adds {100 * after.gain:.0f} % of its part"
        return f"stops to scale at {stop} hosts: {per_host}; {grown}"


def scaling_of(result: SweepResult) -> tuple[HostScaling, ...]:
    """Compare numbers of hosts under otherwise equal values."""
    groups: dict[str, dict[int, list[Trial]]] = {}
    plan = result.plan
    for curve in result.curves:
        for trial in curve.trials:
            knobs = plan.knobs_at(curve.curve, round(trial.load))
            if isinstance(knobs, FleetKnobs):
                others = [
                    f"{knob.key}={shown(knob, value)}" for knob, value in curve.curve.values if knob.id != "hosts"
                ]
                if plan.load is not None and plan.load.knob.id != "hosts":
                    others.append(f"{plan.load.knob.key}={trial.load:g}")
                groups.setdefault(" ".join(others), {}).setdefault(knobs.hosts, []).append(trial)
    return tuple(HostScaling(name, _steps(by_hosts)) for name, by_hosts in groups.items())


def _steps(by_hosts: dict[int, list[Trial]]) -> tuple[ScalingStep, ...]:
    steps: list[ScalingStep] = []
    for hosts in sorted(by_hosts):
        summary = PointSummary.of(hosts, by_hosts[hosts])
        first = steps[0] if steps else None
        alone = summary.iops / hosts if first is None else first.summary.iops / first.hosts
        efficiency = summary.iops / hosts / alone if alone else None
        steps.append(ScalingStep(hosts, summary, efficiency, _gain(steps[-1], summary, hosts) if steps else None))
    return tuple(steps)


def _gain(before: ScalingStep, now: PointSummary, hosts: int) -> float | None:
    if not before.summary.iops:
        return None
    return (now.iops / before.summary.iops - 1) / (hosts / before.hosts - 1)


def scaling_document(scalings: Sequence[HostScaling]) -> list[dict[str, object]]:
    """Write them as JSON."""
    return [
        {
            "values": scaling.name,
            "text": scaling.words,
            "stops_at": scaling.stops_at,
            "steps": [
                {
                    "hosts": step.hosts,
                    "iops": step.summary.iops,
                    "iops_per_host": step.summary.iops / step.hosts,
                    "efficiency": step.efficiency,
                    "growth_share": step.gain,
                    "p99_ms": step.p99_ms,
                }
                for step in scaling.steps
            ],
        }
        for scaling in scalings
    ]
