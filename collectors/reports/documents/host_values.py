"""The host of a run or a sweep, from the key `host` of its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_type_hints

from collectors.model import Device, HostFacts, Tier
from collectors.reports.documents.content import Block, Paragraph, Section
from collectors.reports.documents.host import host_facts, tunables_grid
from collectors.reports.documents.json_values import Values, parts, text_of, texts
from collectors.reports.host_facts import DISK_FIELDS, HOST_FIELDS
from engine.replacing import replace

_Record = TypeVar("_Record", Device, HostFacts)
_TIERS = {tier.name.lower(): tier for tier in Tier}
_NOT_THERE = "The file does not name its host: it is of an earlier version, or the host was not sampled."


def host_section_of(host: Values) -> Section:
    """Describe the host and the settings of the disks below the targets."""
    return Section("Host", tuple(_blocks(host)) if host else (Paragraph(_NOT_THERE),))


def _blocks(host: Values) -> Iterator[Block]:
    facts = HostFacts(tier=_TIERS.get(text_of(host.get("tier")), Tier.NONE), notices=texts(host, "notices"))
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
