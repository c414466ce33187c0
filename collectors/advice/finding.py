"""Findings: what limited a load or what to change, with the figures that say so and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from typing import TypeAlias

from msgspec import Struct

Document: TypeAlias = dict[str, object]
"""A JSON object; every number in it is finite."""


class FindingKind(StrEnum):
    """What a finding is about; the value is the id in documents."""

    HOST_CPU = "host_cpu"
    """The host's processors."""
    CPU_LIMIT = "cpu_limit"
    """What the load may use of them: the quota of a control group, the entitlement of a partition."""
    PAGING = "paging"
    """Memory that is short: pages that are written to swap and read back."""
    DRIVER = "driver"
    """The threads of the engine that issues the load."""
    OWN_RATE = "own_rate"
    """The rate that was asked for."""
    OWN_DEPTH = "own_depth"
    """The queue depth of the load: too low."""
    ABOVE_DEVICE = "above_device"
    """What is between the load and the counters of its devices."""
    DEVICE = "device"
    """A device: I/Os wait for its driver."""
    BUSY_DEVICE = "busy_device"
    """One of several disks that is busy while the others are not."""
    SLOW_TARGET = "slow_target"
    """One target that is slower than its peers."""
    QUEUE_LIMIT = "queue_limit"
    """Commands that a path or port admits."""
    PORT_SPEED = "port_speed"
    """The link of a port."""
    DEPTH_TOO_HIGH = "depth_too_high"
    UNEQUAL_DEPTH = "unequal_depth"
    """Outstanding I/Os that differ over disks."""
    FEW_DISKS = "few_disks"
    ONE_PATH = "one_path"
    ONE_PORT = "one_port"
    BLOCK_SIZE = "block_size"
    MODE = "mode"
    """Direct, buffered or synchronous."""
    PAGE_CACHE = "page_cache"
    """I/Os of a buffered load that its disks did not do."""
    UNEQUAL_LIMIT = "unequal_limit"
    """Commands that the paths of one LUN or the members of one stripe admit, which differ."""
    REDUCED_LIMIT = "reduced_limit"
    """Commands that a path admits, which the kernel has lowered."""
    SPLIT = "split"
    """I/Os that the kernel cuts, because they are larger than a device takes."""
    FEW_REQUESTS = "few_requests"
    """Requests that a queue takes (nr_requests)."""
    SCHEDULER = "scheduler"
    """A scheduler on a fast device."""
    UNCOUNTED = "uncounted"
    """A device whose I/Os the kernel does not count."""
    CACHE_FULL = "cache_full"
    CACHE_BYPASSED = "cache_bypassed"
    UNKNOWN = "unknown"
    """Nothing that is measured is at its limit, or what would show it was not measured."""


LIMITS = frozenset(
    {
        FindingKind.HOST_CPU,
        FindingKind.CPU_LIMIT,
        FindingKind.PAGING,
        FindingKind.DRIVER,
        FindingKind.OWN_RATE,
        FindingKind.OWN_DEPTH,
        FindingKind.ABOVE_DEVICE,
        FindingKind.DEVICE,
        FindingKind.BUSY_DEVICE,
        FindingKind.SLOW_TARGET,
        FindingKind.QUEUE_LIMIT,
        FindingKind.PORT_SPEED,
        FindingKind.UNKNOWN,
    }
)
"""Kinds that name what kept the load from being faster; the others are advice."""


class Confidence(IntEnum):
    """How sure a finding is."""

    HINT = 1
    """One figure, or sampled ones: worth a test."""
    LIKELY = 2
    """Figures that agree; another cause is possible."""
    CERTAIN = 3
    """Follows from counts or exact times by arithmetic."""

    @property
    def word(self) -> str:
        """The id in documents, and the word in text."""
        return self.name.lower()


class Evidence(Struct, frozen=True):
    """One figure that a finding rests on."""

    name: str
    value: float
    """Finite."""
    unit: str = ""
    source: str = "load"
    """"load" for figures of the engine, else the tier of a device's figure, or "topology"."""


class Finding(Struct, frozen=True):
    """One limit or one piece of advice."""

    kind: FindingKind
    confidence: Confidence
    text: str
    """One sentence: what was found and what to change."""
    evidence: tuple[Evidence, ...]
    about: tuple[str, ...] = ()
    """Names of the targets, devices, paths or ports; none is the whole load."""
    where: str = ""
    """Part of the measurement: an epoch or a curve of a sweep; empty for all of it."""
    command: str = ""
    """What to run to change it; empty where no command does."""

    @property
    def section(self) -> str:
        """Whether it is a "limit" or "advice"."""
        return "limit" if self.kind in LIMITS else "advice"

    @property
    def certainty(self) -> str | None:
        """How sure it is, as a word; None where nothing is claimed."""
        return None if self.kind is FindingKind.UNKNOWN else self.confidence.word


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Limits first, then advice, the surest first.

    Whoever has used up a quota waits for a processor, too: that is one cause, and the quota is said.
    """
    given = tuple(findings)
    limited = {found.where for found in given if found.kind is FindingKind.CPU_LIMIT}
    kept = (one for one in given if one.kind is not FindingKind.HOST_CPU or not limited.intersection({"", one.where}))
    return tuple(sorted(kept, key=lambda found: (found.section != "limit", -found.confidence)))


def findings_document(findings: Iterable[Finding]) -> list[Document]:
    """Write them for JSON."""
    return [
        {
            "kind": found.kind.value,
            "section": found.section,
            "confidence": found.certainty,
            "about": list(found.about),
            "where": found.where or None,
            "text": found.text,
            "evidence": [
                {"name": each.name, "value": each.value, "unit": each.unit, "source": each.source}
                for each in found.evidence
            ],
            "command": found.command or None,
        }
        for found in findings
    ]


def tune_command(setting: str, scopes: Sequence[str]) -> str:
    """Write the command that would set a tunable; empty where a name could not be typed as one word."""
    if not scopes or any(not scope or scope.split() != [scope] for scope in scopes):
        return ""
    return f"lunscope tune set {setting} {' '.join(f'--on {scope}' for scope in scopes)} --keep"
