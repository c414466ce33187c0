"""The file of a search for rates: a line of JSON for each trial, read to go on after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from engine.rate_search.plan import RatePlan
from engine.rate_search.trial import RateStage, RateTrial
from engine.sweep.kept_trials import KeptTrials, TrialKind, are_numbers, plain_object

SCHEMA = "lunscope.rate-trials/1"
_NUMBERS = ("rate", "duration_s", "iops", "ios", "skipped", "errors", "bytes_per_s", "start_s")
_LATER: Mapping[str, Any] = {"devices": None, "host_busy_pct": None}
"""Figures that trials of earlier versions lack."""


class RateTrialFile(KeptTrials[RateTrial]):
    """Trials of one search on disk."""

    def __init__(self, path: Path, plan: RatePlan) -> None:
        super().__init__(path, TrialKind(SCHEMA, read_rate_trial), plan.identity, len(plan.curves))


def read_rate_trial(document: Mapping[str, Any]) -> RateTrial | None:
    """Read a trial back; None where it is none."""
    document = {**_LATER, **document}
    if document.keys() != {each.name for each in fields(RateTrial)}:
        return None
    latencies, excess = document["latencies_ns"], document["excess"]
    if not isinstance(latencies, dict) or not isinstance(excess, dict) or not isinstance(document["failing"], list):
        return None
    known = [] if document["host_busy_pct"] is None else [document["host_busy_pct"]]
    if not are_numbers([*(document[name] for name in _NUMBERS), *known, *latencies.values(), *excess.values()]):
        return None
    if document["rate"] <= 0 or document["duration_s"] <= 0 or document["stage"] not in set(RateStage):
        return None
    try:
        document |= {"failing": tuple(map(str, document["failing"])), "devices": plain_object(document["devices"])}
        return RateTrial(**{**document, "is_sustained": bool(document["is_sustained"])})
    except (TypeError, ValueError, RecursionError):
        return None
