"""Findings from the state of devices and caches: limits, schedulers, accounting, full and bypassed caches.

They need no load: the topology and the figures of an interval, or of a run, are enough. Each names the command that
would change it; nothing is changed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct, field

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, tune_command
from collectors.advice.split_rules import split_findings
from collectors.graph import paths_of
from collectors.model import Device, FrameTable, Topology
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key
from engine.text import safe_text

_STRIPES = frozenset({"raid0", "raid10", "raid5", "raid6", "striped", "stripe"})
"""Kinds of layers that spread I/Os evenly over their members."""
_FAST_IOPS = 20_000.0
"""Rate of a device without moving parts: from here on the work of a scheduler per I/O (some us) shows."""
_ALWAYS_SLOWER = frozenset({"bfq"})
"""Schedulers that hold I/Os back on purpose; mq-deadline and kyber only cost time on processors."""
_SCHEDULERS = frozenset({"bfq", "mq-deadline", "kyber"})
_FULL_QUEUE = 0.95
"""Share of nr_requests outstanding on average: submitters wait for a free request most of the time."""
_BLOCKED_PER_S = 0.5
"""A block now and then is a burst, not a full cache."""
_BYPASSED_PCT = 50.0
_LEAST_BYPASSES = 20.0
"""I/Os per second: a rule needs at least as many."""
_FULL_OF_DIRTY_PCT = 95.0
_MOST_NAMED = 4


class DeviceStates(Struct, frozen=True, eq=False):
    """What the rules are applied to."""

    topology: Topology
    disks: FrameTable | None = None
    caches: FrameTable | None = None
    former_limits: Mapping[str, int] = field(default_factory=dict)
    """The highest limit of commands that a path had before, by key, as far as it was seen."""
    depths: Mapping[str, float] = field(default_factory=dict)
    """I/Os that a load keeps outstanding on a disk, by key; empty without a load."""
    stripe: tuple[str, ...] = ()
    """Disks that a load is spread over, by key; empty without a load."""

    def disk(self, key: str, field_id: str) -> float:
        """One figure of a disk; NaN where it is not known."""
        row = None if self.disks is None else self.disks.rows.positions.get(key)
        return math.nan if self.disks is None or row is None else self.disks.value(field_id, row)


def state_findings(state: DeviceStates, only: Collection[str] | None = None) -> Iterator[Finding]:
    """Find what is set unequally, too low or off, about these devices (keys) and what they belong to, or about all."""
    yield from _unequal_paths(state.topology, only)
    yield from _unequal_members(state.topology, only)
    yield from _unequal_targets(state)
    yield from _full_ports(state)
    yield from _reduced(state, only)
    for device in _chosen(state.topology, only):
        yield from _uncounted(device)
        yield from _few_requests(state, device)
        yield from _scheduled(state, device)
        yield from split_findings(device, state.topology.devices.values(), state.disk)
    yield from _caches(state, only)


def _chosen(topology: Topology, only: Collection[str] | None) -> Iterator[Device]:
    if only is None:
        yield from topology.devices.values()
    else:
        yield from (topology.devices[key] for key in only if key in topology.devices)


def _unequal_paths(topology: Topology, only: Collection[str] | None) -> Iterator[Finding]:
    """Paths of one LUN with different limits: a selector that counts I/Os gives each the same share of them."""
    graph, known = topology.graph, paths_of(topology.graph)
    wanted = None if only is None else {*only, *(known[key].lun for key in only if key in known)}
    for lun in graph.luns:
        at = graph.paths_of.get(lun.key, ())
        if len(at) < 2 or (wanted is not None and lun.key not in wanted):
            continue
        limited = [(path.name, path.queue_limit) for path in (graph.paths[one] for one in at)]
        name = safe_text(lun.name)
        scsi = all(graph.paths[one].is_scsi for one in at)
        yield from _unequal(f"paths of {name}", limited, [f"lun:{name}"] if scsi else [], name)


def _unequal_members(topology: Topology, only: Collection[str] | None) -> Iterator[Finding]:
    """Members of a stripe with different limits: a wide I/O is as late as the member that takes the fewest."""
    known = paths_of(topology.graph)
    for layer in topology.graph.layers:
        below = [topology.devices[key] for key in layer.below if key in topology.devices]
        if layer.kind not in _STRIPES or len(below) < 2:
            continue
        if only is not None and not {layer.key, *layer.below} & set(only):
            continue
        limited = [(device.name, device.queue_limit) for device in below]
        paths = [known.get(device.key) for device in below]
        is_scsi = all(path is not None and path.is_scsi for path in paths)
        scopes = [safe_text(device.name) for device in below] if is_scsi else []
        yield from _unequal(f"members of {safe_text(layer.name)}", limited, scopes, safe_text(layer.name))


def _unequal_targets(state: DeviceStates) -> Iterator[Finding]:
    """Disks that a load is spread over with different limits, as of a stripe; a LUN admits what its paths do."""
    known = paths_of(state.topology.graph)
    disks = [state.topology.devices[key] for key in dict.fromkeys(state.stripe) if key in state.topology.devices]
    limited = [(device.name, _admits(state.topology, device)) for device in disks]
    paths = [known.get(device.key) for device in disks if device.queue_limit is not None]
    is_scsi = len(paths) == len(disks) and all(path is not None and path.is_scsi for path in paths)
    scopes = [safe_text(device.name) for device in disks] if is_scsi else []
    lowest = min(((limit, name) for name, limit in limited if limit is not None), default=(0, ""))
    yield from _unequal("disks of the load", limited, scopes, safe_text(lowest[1]))


def _admits(topology: Topology, device: Device) -> int | None:
    """Commands that a disk admits, or all paths of its LUN together; None where one of them does not say."""
    if device.queue_limit is not None:
        return device.queue_limit
    graph = topology.graph
    limits = [graph.paths[at].queue_limit for at in graph.paths_of.get(device.key, ())]
    known = [limit for limit in limits if limit is not None]
    return sum(known) if known and len(known) == len(limits) else None


def _full_ports(state: DeviceStates) -> Iterator[Finding]:
    """Ports that take fewer commands than a load keeps outstanding through them, spread evenly over usable paths."""
    graph, kept = state.topology.graph, dict[str, float]()
    for key, depth in state.depths.items():
        usable = [path for path in (graph.paths[at] for at in graph.paths_of.get(key, ())) if path.usable]
        for path in usable:
            most = math.inf if path.queue_limit is None else path.queue_limit
            kept[path.port] = kept.get(path.port, 0.0) + min(depth / len(usable), most)
    for port in graph.ports:
        through, name = kept.get(port.key, 0.0), safe_text(port.name)
        if port.queue_limit is not None and through > port.queue_limit:
            yield Finding(
                FindingKind.QUEUE_LIMIT,
                Confidence.LIKELY,
                f"the load keeps {through:,.0f} commands outstanding through port {name}, which takes "
                f"{port.queue_limit:,} (can_queue): the rest waits in front of it; lower --qd, or use more ports",
                (
                    Evidence("outstanding by the queue depths of the load and its paths", through, "", "topology"),
                    Evidence("limit of the port", port.queue_limit, "", "topology"),
                ),
                (name,),
            )


def _unequal(
    what: str, limited: Sequence[tuple[str, int | None]], scopes: Sequence[str], about: str
) -> Iterator[Finding]:
    limits = {safe_text(name): limit for name, limit in limited if limit is not None}
    if len(limits) < len(limited) or len(set(limits.values())) < 2:
        return
    most = max(limits.values())
    counts = Counter(limits.values())
    spread = ", ".join(f"{count} x {limit}" for limit, count in sorted(counts.items()))
    lowest = sorted(limits.items(), key=lambda pair: pair[1])[:_MOST_NAMED]
    yield Finding(
        FindingKind.UNEQUAL_LIMIT,
        Confidence.CERTAIN,
        f"the {what} admit different numbers of commands ({spread}): the one with the fewest holds the others up; "
        "give all the same queue_depth",
        tuple(Evidence(f"limit of {name}", limit, "", "topology") for name, limit in (*lowest, _highest(limits))),
        (about,),
        command=tune_command(f"queue_depth={most}", scopes),
    )


def _highest(limits: Mapping[str, int]) -> tuple[str, int]:
    return max(limits.items(), key=lambda pair: pair[1])


def _reduced(state: DeviceStates, only: Collection[str] | None) -> Iterator[Finding]:
    """Paths whose limit fell: the kernel lowers it when the target reports a full task set (scsi_track_queue_full)."""
    now = paths_of(state.topology.graph)
    for key, former in state.former_limits.items():
        path = now.get(key)
        if path is None or path.queue_limit is None or path.queue_limit >= former:
            continue
        if only is not None and key not in only and path.lun not in only:
            continue
        name = safe_text(path.name)
        yield Finding(
            FindingKind.REDUCED_LIMIT,
            Confidence.LIKELY,
            f"the queue_depth of {name} fell from {former} to {path.queue_limit}: its target reported QUEUE FULL, "
            "unless somebody set it; fewer commands outstanding at the target, over all hosts, prevent that",
            (
                Evidence("queue_depth", path.queue_limit, "", "topology"),
                Evidence("before", former, "", "topology"),
            ),
            (name,),
            command=tune_command(f"queue_depth={path.queue_limit}", [name]) if path.is_scsi else "",
        )


def _uncounted(device: Device) -> Iterator[Finding]:
    """Accounting off: all counters of the device stand still, whatever it does."""
    if device.iostats is False:
        name = safe_text(device.name)
        yield Finding(
            FindingKind.UNCOUNTED,
            Confidence.CERTAIN,
            f"the kernel does not count the I/Os of {name} (iostats is 0): its figures are blind",
            (Evidence("iostats", 0, "", "topology"),),
            (name,),
            command=tune_command("iostats=1", [name]),
        )


def _few_requests(state: DeviceStates, device: Device) -> Iterator[Finding]:
    """More I/Os than the queue takes: the rest wait for a free request, before any counter of the device.

    A device with several hardware queues takes nr_requests in each: a load above it is a hint only.
    """
    wanted, admitted = state.depths.get(device.key, math.nan), device.nr_requests
    outstanding = state.disk(device.key, "in_flight")
    if admitted is None or device.bio_based:
        return
    full = outstanding >= _FULL_QUEUE * admitted
    if not wanted > admitted and not full:
        return
    name, most = safe_text(device.name), wanted if wanted > admitted else 2.0 * admitted
    # Without a scheduler the kernel takes no more requests than the hardware has tags.
    tags = device.queue_limit if device.scheduler == "none" else None
    raised = 1 << math.ceil(math.log2(most))
    possible = tags is None or raised <= tags
    yield Finding(
        FindingKind.FEW_REQUESTS,
        Confidence.LIKELY if full else Confidence.HINT,
        f"the queue of {name} takes {admitted} requests (nr_requests) and more I/Os are in use: the rest wait before "
        "the device's counters; raise nr_requests, or lower --qd",
        tuple(
            Evidence(text, value, "", source)
            for text, value, source in (
                ("nr_requests", float(admitted), "topology"),
                ("QD on it", wanted, "load"),
                ("outstanding", outstanding, "kernel"),
            )
            if not math.isnan(value)
        ),
        (name,),
        command=tune_command(f"nr_requests={raised}", [name]) if possible else "",
    )


def _scheduled(state: DeviceStates, device: Device) -> Iterator[Finding]:
    """Find a scheduler where it only costs: on a solid-state device with tens of thousands of I/Os per second."""
    iops = state.disk(device.key, "iops")
    if device.scheduler not in _SCHEDULERS or device.rotational is not False or not iops >= _FAST_IOPS:
        return
    name = safe_text(device.name)
    yield Finding(
        FindingKind.SCHEDULER,
        Confidence.LIKELY if device.scheduler in _ALWAYS_SLOWER else Confidence.HINT,
        f"{name} is fast and has the scheduler {device.scheduler}: none costs less time per I/O (it also ends the fair "
        "shares and the deadlines that the scheduler gives)",
        (Evidence("IOPS", iops, "", "kernel"),),
        (name,),
        command=tune_command("scheduler=none", [name]),
    )


def _caches(state: DeviceStates, only: Collection[str] | None) -> Iterator[Finding]:
    table = state.caches
    if table is None:
        return
    for row, (key, name) in enumerate(zip(table.rows.keys, table.rows.names, strict=True)):
        if only is None or subject_of_key(key) in only:
            shown = _Cache(key, safe_text(name), safe_text(_device_name(state.topology, key)))
            yield from _full_cache(table, row, shown)
            yield from _bypassed_cache(table, row, shown)


class _Cache(Struct, frozen=True):
    key: str
    name: str
    device: str

    @property
    def kind(self) -> str:
        return kind_of(self.key)


def _device_name(topology: Topology, key: str) -> str:
    device = topology.devices.get(subject_of_key(key))
    if device is None:
        return subject_of_key(key)
    return device.friendly_name or device.name if kind_of(key).startswith("dm-") else device.name


_FULL_COMMANDS = {
    "dm-writecache": "dmsetup message {device} 0 flush",
    "bcache": "echo 5 > /sys/block/{device}/bcache/writeback_percent",
}
_BYPASS_COMMANDS = {
    "bcache": "echo 0 > /sys/block/{device}/bcache/sequential_cutoff",
    "bcache none": "lunscope tune set bcache.cache_mode=writethrough --on {device} --keep",
    "bcache detached": "",
    "zfs": "zfs set direct=disabled {device}",
}
"""What would change it; `{device}` is the map, the device or the pool."""


def _command(commands: Mapping[str, str], cache: _Cache) -> str:
    plain = cache.device.split() == [cache.device]
    mode = f"{cache.kind} {cache.name.rpartition(' ')[2]}"
    return commands.get(mode, commands.get(cache.kind, "")).format(device=cache.device) if plain else ""


def _full_cache(table: FrameTable, row: int, cache: _Cache) -> Iterator[Finding]:
    """Find writes that waited for a free block, or a cache that is nearly all dirty."""
    blocked, dirty = table.value("blocked_per_s", row), table.value("dirty_pct", row)
    full = blocked >= _BLOCKED_PER_S or dirty >= _FULL_OF_DIRTY_PCT
    if not full or cache.kind not in DEVICE_KINDS:
        return
    yield Finding(
        FindingKind.CACHE_FULL,
        Confidence.CERTAIN if blocked >= _BLOCKED_PER_S else Confidence.LIKELY,
        f"the cache {cache.name} is full: writes wait until it has written data to the device below; write less, let "
        "it write back earlier, or make it larger",
        tuple(_evidence(table, row, ("blocked_per_s", "blocked", "/s"), ("dirty_pct", "dirty", "%"))),
        (cache.name,),
        command=_command(_FULL_COMMANDS, cache),
    )


def _bypassed_cache(table: FrameTable, row: int, cache: _Cache) -> Iterator[Finding]:
    """Most I/Os never met the cache, so its hit rate says nothing of them: mode none, sequential cutoff, direct I/O."""
    share, rate = table.value("bypass_pct", row), table.value("bypasses_per_s", row)
    if not share >= _BYPASSED_PCT or not rate >= _LEAST_BYPASSES:
        return
    reads = "reads" if cache.kind in {"zfs", "bcache"} else "I/Os"
    yield Finding(
        FindingKind.CACHE_BYPASSED,
        Confidence.CERTAIN,
        f"{share:.0f} % of the {reads} of {cache.name} never met the cache: its hit rate says nothing of them",
        tuple(_evidence(table, row, ("bypass_pct", "bypass", "%"), ("hit_pct", "hit", "%"))),
        (cache.name,),
        command=_command(_BYPASS_COMMANDS, cache),
    )


def _evidence(table: FrameTable, row: int, *wanted: tuple[str, str, str]) -> Iterator[Evidence]:
    for field_id, name, unit in wanted:
        value = table.value(field_id, row)
        if not math.isnan(value):
            yield Evidence(name, value, unit, "kernel")
