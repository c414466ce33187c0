"""The file of a sweep: a line of JSON for each trial, written once it is measured, read to go on after a crash."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.errors import LunscopeError, words_of
from engine.statistics.batch_means import Stop
from engine.statistics.warmup import Trend
from engine.sweep.line_file import MOST_BYTES, LineFile, parsed
from engine.sweep.plan import SweepPlan
from engine.sweep.search import SearchStage
from engine.sweep.target_share import TargetShare
from engine.sweep.trial import Trial

SCHEMA = "lunscope.sweep-trials/1"
_LARGEST = 1e30
"""More than any figure of a trial."""
_NUMBERS = ("ios", "load", "in_flight", "iops", "latency_ns", "half_width", "bytes_per_s", "start_s", "duration_s")

_MAYBE = ("average_peak_ns", "host_cpu_s_per_gb")
"""Numbers that may be unknown."""
_LATER: Mapping[str, Any] = {"targets": [], **dict.fromkeys(_MAYBE)}


@dataclass
class TrialFile:
    """Trials of one sweep on disk; the owner appends, nobody else writes."""

    path: Path
    plan: SweepPlan
    done: list[tuple[int, Trial]] = field(default_factory=list)
    """Trials read from it, with the index of their curve."""

    def __enter__(self) -> Self:
        """Open or create it and read what is there; a line that was cut off is dropped.

        Raises:
            UsageError: it is of another sweep, or not of a sweep at all.
            LunscopeError: it cannot be opened.
        """
        self._file = LineFile(self.path, SCHEMA, self.plan.identity)
        with ExitStack() as opened:
            opened.enter_context(self._file)
            self.done = list(self._trials(self._file))
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def append(self, curve: int, trial: Trial) -> None:
        """Write one trial, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        self._file.append({"curve": curve, **trial_document(trial)})

    def _trials(self, file: LineFile) -> Iterator[tuple[int, Trial]]:
        for number, (curve, trial) in enumerate(_parsed_trials(file.lines), start=1):
            if trial is None or not 0 <= curve < len(self.plan.curves):
                raise file.damaged(number)
            yield curve, trial


def read_trials(path: Path) -> list[tuple[int, Trial]]:
    """Read the trials of any sweep, with the index of their curve; lines that are damaged or cut off are left out.

    Raises:
        LunscopeError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(MOST_BYTES).split(b"\n")[1:]
    except OSError as error:
        raise LunscopeError(f"{path}: {words_of(error)}") from None
    return [(curve, trial) for curve, trial in _parsed_trials(lines) if trial is not None and curve >= 0]


def _parsed_trials(lines: list[bytes]) -> Iterator[tuple[int, Trial | None]]:
    for line in lines:
        document = parsed(line)
        curve = document.pop("curve", None)
        yield (curve, read_trial(document)) if isinstance(curve, int) else (-1, None)


def trial_document(trial: Trial) -> dict[str, Any]:
    """Return a trial as a JSON object that `read_trial` reads back."""
    return asdict(trial)


def read_trial(document: Mapping[str, Any]) -> Trial | None:
    """Read a trial back; None where it is none. Those of earlier versions lack the figures of `_LATER`."""
    document = {**_LATER, **document}
    if document.keys() != {each.name for each in fields(Trial)}:
        return None
    latencies = document["latencies_ns"]
    numbers = [document[name] for name in _NUMBERS] + (
        list(latencies.values()) if isinstance(latencies, dict) else [None]
    )
    numbers += [value for name in _MAYBE if (value := document[name]) is not None]
    if not all(isinstance(number, int | float) and 0 <= number < _LARGEST for number in numbers):
        return None
    try:
        document |= {"stop": Stop(document["stop"]), "trend": Trend(document["trend"])}
        document |= {"stage": SearchStage(document["stage"]).value, "failing": tuple(map(str, document["failing"]))}
        document |= {"targets": tuple(map(_target, document["targets"]))}
        return Trial(**document)
    except (TypeError, ValueError):
        return None


def _target(document: object) -> TargetShare:
    if not isinstance(document, dict) or document.keys() != {each.name for each in fields(TargetShare)}:
        raise ValueError("not a target")
    numbers = [document[name] for name in ("ios", "iops", "latency_ns")]
    numbers += [value for value in (document["p99_ns"], document["waited_pct"]) if value is not None]
    if not all(isinstance(number, int | float) and 0 <= number < _LARGEST for number in numbers):
        raise ValueError("not a target")
    return TargetShare(**{**document, "name": str(document["name"])})
