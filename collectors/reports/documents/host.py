"""Sections on where the figures of a report come from: host, tier and its reason, tunables of disks, caveats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar, get_type_hints

from collectors.exact.losses import loss_words
from collectors.kernel.device_ids import both_names
from collectors.model import Device, HostFacts, Tier
from collectors.paths.event_groups import event_groups
from collectors.reports.documents.content import Block, Bullets, DocumentTable, Facts, Mark, Paragraph, Section
from collectors.reports.documents.json_values import Values, parts, text_of, texts
from collectors.reports.documents.recorded import Recorded
from collectors.reports.host_facts import DISK_FIELDS, HOST_FIELDS
from collectors.session.time_format import clock_text, iso_time
from engine.events import Event, EventKind
from engine.replacing import replace
from engine.version import version

_TIERS = {
    Tier.NONE: "none",
    Tier.KERNEL: "kernel counters: no split into queue and service time",
    Tier.SAMPLED: "sampled: queue and service times are estimates from I/Os in flight",
    Tier.EXACT: "exact: timed by the kernel's block tracepoints",
}
_MOST_EVENTS = 60
_MOST_MARKS = 20
_MARKED = tuple(kind for kind in EventKind if kind not in {EventKind.HOTPLUG, EventKind.MONITOR})
"""Kinds that are marked in charts where there are many events."""
_MOST_REMARKS = 20


def host_section(found: Recorded) -> Section:
    """Host, kernel, processors, version and tier."""
    return Section("Host", tuple(host_facts(found.topology.host)))


def host_facts(host: HostFacts) -> Iterator[Block]:
    """Yield the facts of a host, and what is known to be wrong with its figures."""
    memory = None if host.memory_bytes is None else f"{host.memory_bytes / 2**30:.1f} GiB"
    rows = [
        ("Host", host.hostname),
        ("Kernel", f"Linux {host.kernel} {host.machine}".strip()),
        ("CPUs", f"{host.cpus or ''} {host.cpu_model}".strip()),
        ("Memory", memory or ""),
        ("Tier", _TIERS[host.tier]),
        ("Report made by", f"lunscope {version()}"),
    ]
    yield Facts(tuple((name, value) for name, value in rows if value))
    if host.notices:
        yield Bullets(host.notices)


def tunables_grid(devices: Sequence[Device], note: str = "As of the end of the recording.") -> DocumentTable | None:
    """Show the recorded tunables of disks; columns that none of them has are left out."""
    columns = {
        "scheduler": [device.scheduler for device in devices],
        "nr_requests": [_whole(device.nr_requests) for device in devices],
        "queue_depth": [_whole(device.queue_limit) for device in devices],
        "read_ahead_kb": [_whole(device.read_ahead_kb) for device in devices],
        "max_sectors_kb": [_whole(device.max_sectors_kb) for device in devices],
        "write_cache": [device.write_cache for device in devices],
        "rotational": [_flag(device.rotational) for device in devices],
        "iostats": [_flag(device.iostats) for device in devices],
        "logical block": [_whole(device.logical_block_bytes) for device in devices],
        "physical block": [_whole(device.physical_block_bytes) for device in devices],
        "size": ["" if device.size_bytes is None else f"{device.size_bytes / 2**30:.1f} GiB" for device in devices],
        "model": [" ".join(part for part in (device.vendor, device.model) if part) for device in devices],
    }
    shown = {name: values for name, values in columns.items() if any(values)}
    if not shown:
        return None
    rows = tuple(
        (both_names(device), *(values[at] or "-" for values in shown.values())) for at, device in enumerate(devices)
    )
    head = (("disk", ""), *((name, "B" if name.endswith("block") else "") for name in shown))
    return DocumentTable("Tunables of these disks", head, rows, texts=len(head), note=note)


def _whole(value: int | None) -> str:
    return "" if value is None else str(value)


def _flag(value: bool | None) -> str:
    return "" if value is None else "1" if value else "0"


def caveats_section(found: Recorded, events: Sequence[Event], notice: str) -> Section:
    """Say what makes the figures less than they seem."""
    lines = tuple(_caveats(found, events, notice))
    return Section("Caveats", (Bullets(lines or ("none found: no gap, no late sample, nothing lost",)),))


def _caveats(found: Recorded, events: Sequence[Event], notice: str) -> Iterator[str]:
    if notice:
        yield f"The file: {notice}"
    if not found.intervals:
        yield "No interval was recorded: there are no figures"
    if found.gaps:
        yield f"{_count(found.gaps, 'gap')} in the recording: nothing is known of that time"
    if found.late:
        late = f"late by more than half an interval, by up to {found.largest_late_s:.2f} s"
        yield f"{_count(found.late, 'sample')} {late}"
    lost = [f"{count:,} {words}" for words, count in loss_words(found.losses) if count]
    if lost:
        yield f"Lost by exact time: {', '.join(lost)}"
    path_events = [event for event in events if event.kind is EventKind.PATH]
    if path_events:
        first = path_events[0]
        yield f"{_count(len(path_events), 'path event')}, the first at {clock_text(first.time_ns)}: {first.text}"
    failed = [path for path in found.topology.graph.paths if path.failures]
    if failed:
        named = ", ".join(f"{path.name} {path.failures:,}" for path in failed[:8])
        yield f"Failures of paths since they were made: {named}{', ...' if len(failed) > 8 else ''}"
    for path, count in found.remarks.most_common(_MOST_REMARKS):
        yield f"{found.last_remarks[path]} (in {_count(count, 'interval')} of the charts, this the last)"
    yield from (f"Device graph: {text}" for text in found.topology.graph.notices)


def _count(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def events_section(events: Sequence[Event]) -> Section:
    """All events with the numbers of their marks, those with one cause as one; the first ones if there are many."""
    if not events:
        return Section("Events", ())
    groups = event_groups(events)
    rows = tuple(
        (str(number), clock_text(group.first.time_ns), group.first.kind.value, group.text)
        for number, group in enumerate(groups[:_MOST_EVENTS], 1)
    )
    more = len(groups) - _MOST_EVENTS
    note = "Numbers are those of the marks in the charts." + (f" {more:,} more are not listed." if more > 0 else "")
    return Section(
        "Events", (DocumentTable("", (("#", ""), ("time", ""), ("kind", ""), ("event", "")), rows, 4, note),)
    )


def marks_of(events: Sequence[Event], start_ns: int) -> tuple[Mark, ...]:
    """Events as marks with their numbers; of many, only those that change a load or a path, and notes."""
    numbered = list(enumerate(event_groups(events)[:_MOST_EVENTS], 1))
    if len(numbered) > _MOST_MARKS:
        numbered = [(number, group) for number, group in numbered if group.first.kind in _MARKED]
    return tuple(Mark((group.first.time_ns - start_ns) / 1e9, str(number), group.text) for number, group in numbered)


def span_text(found: Recorded) -> str:
    """Start, end and length of a recording."""
    start, end = iso_time(found.start_ns) or "-", iso_time(found.end_ns) or "-"
    measured = f"{_count(found.intervals, 'interval')}, {found.measured_s:.1f} s measured"
    return f"{start} to {end}, {measured}; times of day are in {_zone(found.start_ns)}"


def _zone(time_ns: int) -> str:
    try:
        return datetime.fromtimestamp(time_ns / 1e9).astimezone().strftime("UTC%z")
    except (OverflowError, ValueError, OSError):
        return "local time"


_Record = TypeVar("_Record", Device, HostFacts)
_TIERS_BY_NAME = {tier.name.lower(): tier for tier in Tier}
_NOT_THERE = "The file does not name its host: it is of an earlier version, or the host was not sampled."


def host_section_of(host: Values) -> Section:
    """Describe the host and the settings of the disks below the targets."""
    return Section("Host", tuple(_blocks(host)) if host else (Paragraph(_NOT_THERE),))


def _blocks(host: Values) -> Iterator[Block]:
    facts = HostFacts(tier=_TIERS_BY_NAME.get(text_of(host.get("tier")), Tier.NONE), notices=texts(host, "notices"))
    yield from host_facts(_with_known(facts, host, HOST_FIELDS))
    grid = tunables_grid([_disk(each) for each in parts(host, "disks")], "As of the measurement.")
    if grid is not None:
        yield grid


def _disk(values: Values) -> Device:
    name = text_of(values.get("name"))
    return _with_known(Device(key=name, name=name, kind="disk", major=0, minor=0), values, DISK_FIELDS)


def _with_known(record: _Record, values: Mapping[str, Any], names: tuple[str, ...]) -> _Record:
    """Take the values that have the type of their field; the others keep their default."""
    hints = get_type_hints(type(record))
    known = {
        name: values[name]
        for name in names
        if name in values and hints[name] in (type(values[name]), type(values[name]) | None)
    }
    return replace(record, **known)
