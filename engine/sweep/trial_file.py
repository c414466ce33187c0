"""The file of a sweep: a line of JSON for each trial, read to go on after a crash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.errors import unusable, words_of
from engine.statistics.batch_means import Stop
from engine.statistics.warmup import Trend
from engine.sweep.kept_trials import KeptTrials, TrialKind, are_numbers, host_of, parsed_trials, plain_object
from engine.sweep.line_file import MOST_BYTES
from engine.sweep.plan import SweepPlan
from engine.sweep.search import SearchStage
from engine.sweep.target_share import TargetShare
from engine.sweep.trial import Trial

SCHEMA = "lunscope.sweep-trials/1"
_NUMBERS = ("ios", "load", "in_flight", "iops", "latency_ns", "half_width", "bytes_per_s", "start_s", "duration_s")

_MAYBE = (
    *("service_ns", "average_peak_ns", "host_cpu_s_per_gb", "engine_cpus", "engine_share", "engine_waiting_share"),
    "host_busy_pct",
)
"""Numbers that may be unknown."""
_LATER: Mapping[str, Any] = {"targets": [], "devices": None, **dict.fromkeys(_MAYBE)}


class TrialFile(KeptTrials[Trial]):
    """Trials of one sweep on disk."""

    def __init__(self, path: Path, plan: SweepPlan, hosts: Sequence[str] = ()) -> None:
        """Keep the trials of a plan; those of other hosts of a fleet are of another sweep."""
        identity = plan.identity
        if hosts:
            identity = hashlib.sha256("\0".join((identity, *hosts)).encode()).hexdigest()[: len(identity)]
        super().__init__(path, TrialKind(SCHEMA, read_trial), identity, len(plan.curves))


class FoundTrials(Struct, frozen=True):
    """What the file of any sweep holds."""

    trials: list[tuple[int, Trial]]
    """With the index of their curve."""
    host: Mapping[str, Any] | None
    """Facts of the host on which the last ones were measured."""


def read_trials(path: Path) -> FoundTrials:
    """Read the file of any sweep; lines that are damaged or cut off are left out.

    Raises:
        LunscopeError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(MOST_BYTES).split(b"\n")[1:]
    except OSError as error:
        raise unusable(f"{path}: {words_of(error)}", error) from None
    found = parsed_trials(lines, read_trial)
    trials = [(curve, trial) for _, curve, trial in found if trial is not None and curve >= 0]
    return FoundTrials(trials, host_of(lines))


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
    if not are_numbers(numbers):
        return None
    try:
        document |= {"stop": Stop(document["stop"]), "trend": Trend(document["trend"])}
        document |= {"stage": SearchStage(document["stage"]).value, "failing": tuple(map(str, document["failing"]))}
        document |= {"targets": tuple(map(_target, document["targets"])), "devices": plain_object(document["devices"])}
        return Trial(**document)
    except (TypeError, ValueError, RecursionError):
        return None


def _target(document: object) -> TargetShare:
    if not isinstance(document, dict) or document.keys() != {each.name for each in fields(TargetShare)}:
        raise ValueError("not a target")
    numbers = [document[name] for name in ("ios", "iops", "latency_ns")]
    numbers += [value for value in (document["p99_ns"], document["waited_pct"]) if value is not None]
    if not are_numbers(numbers):
        raise ValueError("not a target")
    return TargetShare(**{**document, "name": str(document["name"])})
