"""What several loads measured that ran at the same time: each by itself, and all I/Os together."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.replacing import replace
from engine.results.measured import Measured, Split, combine_splits
from engine.results.result import ErrorCount, RunResult

_LAST_ENDINGS = ("stopped", "failed")


class NamedResult(Struct, frozen=True):
    """What one of the loads measured."""

    name: str
    result: RunResult


class GroupResult(Struct, frozen=True, eq=False):
    """All loads of a group, at least one."""

    loads: tuple[NamedResult, ...]

    @property
    def results(self) -> tuple[RunResult, ...]:
        """The results alone."""
        return tuple(load.result for load in self.loads)

    @property
    def total(self) -> Split:
        """All I/Os of all loads: latencies are merged from their histograms.

        The average peak is not known: the largest latencies of a second are those of one load.
        """
        total = combine_splits([result.total for result in self.results])
        return Split(*(_without_peaks(part) for part in (total.read, total.write, total.total)))

    @property
    def measured_ns(self) -> tuple[int, int]:
        """When the first load began to be measured and the last ended, on the monotonic clock; 0, 0 if none was."""
        spans = [span for span in map(_measured_ns, self.results) if span is not None]
        return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else (0, 0)

    @property
    def duration_s(self) -> float:
        """Seconds in which any load was measured, which rates of all together are about."""
        begin_ns, end_ns = self.measured_ns
        return (end_ns - begin_ns) / 1e9

    @property
    def started_ns(self) -> int:
        """When the first of them began, on the monotonic clock; 0 if none did."""
        return min((result.about.started_ns for result in self.results if result.about.started_ns), default=0)

    @property
    def ended_ns(self) -> int:
        """When the last of them ended, on the monotonic clock."""
        return max(result.ended_ns for result in self.results)

    @property
    def elapsed_s(self) -> float:
        """From the first start to the last end."""
        return (self.ended_ns - self.started_ns) / 1e9 if self.started_ns else 0.0

    @property
    def ended(self) -> str:
        """Why it is over: failed or stopped if any load was, else as the last load that ended."""
        endings = [result.about.ended for result in self.results]
        bad = [ending for ending in _LAST_ENDINGS if ending in endings]
        return bad[-1] if bad else max(self.results, key=lambda result: result.ended_ns).about.ended

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets of all loads, each once."""
        return tuple(self._targets)

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the devices of each of the targets."""
        return tuple(self._targets.values())

    @property
    def _targets(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for load in self.loads:
            about = load.result.about
            devices = about.devices or ((),) * len(about.targets)
            for spec, name, numbers in zip(about.job.targets, about.targets, devices, strict=False):
                # Every load counts its own scratch files from 1.
                found[name if spec.path is not None else f"[{load.name}] {name}"] = numbers
        return found

    @property
    def errors(self) -> tuple[ErrorCount, ...]:
        """I/Os that failed, the most frequent first; a load each."""
        return tuple(sorted((error for each in self.results for error in each.errors), key=lambda error: -error.ios))


def _measured_ns(result: RunResult) -> tuple[int, int] | None:
    spans = [
        (result.about.started_ns + round(epoch.start_s * 1e9), round(epoch.duration_s * 1e9))
        for epoch in result.epochs
        if epoch.start_s is not None
    ]
    return (spans[0][0], spans[-1][0] + spans[-1][1]) if spans else None


def _without_peaks(measured: Measured) -> Measured:
    return replace(measured, peak_sum_ns=0, peak_seconds=0)


def group_result(loads: Sequence[tuple[str, RunResult]]) -> GroupResult:
    """Put the results of loads together, with their names."""
    return GroupResult(tuple(NamedResult(name, result) for name, result in loads))
