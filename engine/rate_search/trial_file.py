"""The file of a search for rates: a line of JSON for each trial, read to go on after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from engine.rate_search.plan import RatePlan
from engine.rate_search.search import RateStage
from engine.rate_search.trial import RateTrial
from engine.sweep.line_file import LineFile, parsed

SCHEMA = "lunscope.rate-trials/1"
_LARGEST = 1e30
"""More than any figure of a trial."""
_NUMBERS = ("rate", "duration_s", "iops", "ios", "skipped", "errors", "bytes_per_s", "start_s")


@dataclass
class RateTrialFile:
    """Trials of one search on disk; the owner appends, nobody else writes."""

    path: Path
    plan: RatePlan
    done: list[tuple[int, RateTrial]] = field(default_factory=list)
    """Trials read from it, with the index of their combination."""

    def __enter__(self) -> Self:
        """Open or create it and read what is there.

        Raises:
            UsageError: it is of another search, or a line is damaged.
            LunscopeError: it cannot be opened.
        """
        self._file = LineFile(self.path, SCHEMA, self.plan.identity)
        with ExitStack() as opened:
            opened.enter_context(self._file)
            self.done = [self._read(number, line) for number, line in enumerate(self._file.lines, start=1)]
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def append(self, curve: int, trial: RateTrial) -> None:
        """Write one trial, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        self._file.append({"curve": curve, **asdict(trial)})

    def _read(self, number: int, line: bytes) -> tuple[int, RateTrial]:
        document = parsed(line)
        curve, trial = document.pop("curve", None), read_rate_trial(document)
        if trial is None or not isinstance(curve, int) or not 0 <= curve < len(self.plan.curves):
            raise self._file.damaged(number)
        return curve, trial


def read_rate_trial(document: Mapping[str, Any]) -> RateTrial | None:
    """Read a trial back; None where it is none."""
    if document.keys() != {each.name for each in fields(RateTrial)}:
        return None
    latencies, excess = document["latencies_ns"], document["excess"]
    if not isinstance(latencies, dict) or not isinstance(excess, dict) or not isinstance(document["failing"], list):
        return None
    numbers = [*(document[name] for name in _NUMBERS), *latencies.values(), *excess.values()]
    if not all(isinstance(number, int | float) and 0 <= number < _LARGEST for number in numbers):
        return None
    if document["rate"] <= 0 or document["duration_s"] <= 0 or document["stage"] not in set(RateStage):
        return None
    return RateTrial(
        **{**document, "failing": tuple(map(str, document["failing"])), "is_sustained": bool(document["is_sustained"])}
    )
