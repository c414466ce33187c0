"""Disks, paths, the ports at both of their ends, and the whole host: subjects of one raw table."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.graph import Path, paths_of, policies_of, ports_of, targets_of
from collectors.kernel.device_ids import both_names, label_of, plain_wwid
from collectors.model import Frame, FrameTable, Rows, Table, Tier, Topology
from collectors.sampling.reading import Collector
from collectors.subject import Averages, Interval, Report, SampledHost, Subject, any_above
from collectors.tables.block.fields import DISK_FIELDS, HOST_FIELDS, PATH_FIELDS, PORT_FIELDS, TARGET_FIELDS
from collectors.tables.block.schema import (
    DISK,
    GROUP,
    PATH_ERRORS,
    PATH_STATE,
    PORT_ERRORS,
    SLOW_IO,
    TRACE,
    TRACE_GROUP,
    TRACER,
)
from engine.text import safe_text


def path_readers(host: SampledHost) -> Iterator[Collector]:
    """Yield the reader of path error counters."""
    from collectors.sampling.slow_counters import SlowCounters  # noqa: PLC0415
    from collectors.tables.block import error_readers as errors  # noqa: PLC0415 (see collectors.subject.Readers)

    take, events_of = errors.PathErrors(host.sysfs).take, errors.path_error_events(host.devices)
    yield SlowCounters("path errors", host.graph, take, errors.PATH_PACE, events_of)


def port_readers(host: SampledHost) -> Iterator[Collector]:
    """Yield the reader of port error counters, if enabled, and the in-flight sampler of ports, if it can start."""
    from collectors.sampling.slow_counters import SlowCounters  # noqa: PLC0415
    from collectors.tables.block import error_readers as errors  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.block.group_watch import start_group_watch  # noqa: PLC0415

    if host.settings.fabric_counters:
        take = errors.PortErrors(host.sysfs).take
        yield SlowCounters("port errors", host.graph, take, errors.PORT_PACE, errors.port_error_events)
    if host.tier >= Tier.SAMPLED:
        try:
            yield start_group_watch(host.sysfs, host.disks, host.graph)
        except OSError:  # No thread can be started; the counters still work.
            return


def _derive(interval: Interval, table: Table) -> dict[str, FrameTable]:
    # See collectors.subject.Readers: the first screen is drawn without figures.
    from collectors.derive.error_counters import with_errors  # noqa: PLC0415
    from collectors.tables.block.derive.block_tables import (  # noqa: PLC0415
        block_interval,
        block_tables,
        silent_rows,
        stalled_ms,
    )
    from collectors.tables.block.derive.disk_figures import with_others  # noqa: PLC0415
    from collectors.tables.block.derive.exact import with_exact  # noqa: PLC0415

    previous, current, elapsed_s = interval.previous, interval.current, interval.elapsed_s
    reduced = block_interval(previous, current)
    silent = silent_rows(table)
    block = block_tables(
        table.rows,
        reduced.moved,
        current.topology,
        elapsed_s,
        silent,
        sampled_groups=reduced.sampled_groups,
        stalled_ms=stalled_ms(table),
    )
    tables = with_others(with_exact(block, reduced.traced, table.rows, current.topology, silent), current.topology)
    return with_errors(
        tables, None if previous is None else previous.tables, current.tables, current.topology, elapsed_s
    )


def _averages() -> Averages:
    from collectors.tables.block.averages import BlockAverages  # noqa: PLC0415 (only reports need it)

    return BlockAverages()


# --------------------------------------------------------------------- disks


def _disk_labels(rows: Rows, topology: Topology) -> tuple[str, ...]:
    named = zip(map(topology.devices.get, rows.keys), rows.names, strict=True)
    return tuple(name if device is None else both_names(device) for device, name in named)


def _disk_facts(key: str, topology: Topology) -> dict[str, object]:
    device = topology.devices.get(key)
    if device is None:
        return {"label": "", "wwid": ""}
    return {"label": safe_text(device.friendly_name), "wwid": safe_text(plain_wwid(device.persistent_id))}


# --------------------------------------------------------------------- paths


def _path_labels(rows: Rows, topology: Topology) -> tuple[str, ...]:
    return tuple(_path_label(key, name, topology) for key, name in zip(rows.keys, rows.names, strict=True))


def _path_label(key: str, name: str, topology: Topology) -> str:
    path = paths_of(topology.graph).get(key)
    if path is None:
        return name
    port = ports_of(topology.graph).get(path.port)
    lun = [] if path.lun == path.key else [_lun_name(path, topology)]
    return " ".join([*lun, name, *([port.label or port.name] if port else [])])


def _lun_name(path: Path, topology: Topology) -> str:
    return label_of(topology.devices.get(path.lun), "")


def _path_facts(key: str, topology: Topology) -> dict[str, object]:
    path = paths_of(topology.graph).get(key)
    if path is None:
        return {}
    port = ports_of(topology.graph).get(path.port)
    return {
        "lun": safe_text(_lun_name(path, topology)),
        "port": safe_text(port.name) if port else "",
        "target": safe_text(path.target),
        "address": safe_text(path.address),
        "state": safe_text(path.state),
        "access": safe_text(path.access),
        "usable": path.usable,
        "marginal": path.marginal,
        "preferred": path.preferred,
        "group": path.group,
        "weight": path.weight,
        "failures": path.failures,
        "policy": safe_text(policies_of(topology.graph).get(path.lun, "")),
        "target_port": safe_text(path.target_port),
        "relative_port": path.relative_port,
        "port_group": path.port_group,
        "controller": safe_text(path.controller),
        "priority": path.priority,
    }


def _path_remarks(frame: Frame) -> Iterator[str]:
    from collectors.tables.block.path_verdict import path_verdicts  # noqa: PLC0415 (only reports need it)

    return (f"! {verdict}" for verdict in path_verdicts(frame))


# ----------------------------------------------------------------- HBA ports


def _port_labels(rows: Rows, topology: Topology) -> tuple[str, ...]:
    ports = ports_of(topology.graph)
    return tuple(
        f"{name} {safe_text(ports[key].label) or ports[key].transport}" if key in ports else name
        for key, name in zip(rows.keys, rows.names, strict=True)
    )


def _port_facts(key: str, topology: Topology) -> dict[str, object]:
    port = ports_of(topology.graph).get(key)
    if port is None:
        return {}
    return {
        "label": safe_text(port.label),
        "transport": port.transport,
        "members": list(map(safe_text, port.members)),
        "state": port.state,
    }


# -------------------------------------------------------------- target ports


def _target_facts(key: str, topology: Topology) -> dict[str, object]:
    target = targets_of(topology.graph).get(key)
    if target is None:
        return {}
    return {
        "address": safe_text(target.name),
        "label": safe_text(target.label),
        "transport": target.transport,
        "array": safe_text(target.array),
    }


# ------------------------------------------------------------------ subjects

_COLUMNS = ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight")
_GRID = (
    "heat",
    "queue_ms",
    "service_ms",
    "await_ms",
    "busy_pct",
    "in_flight",
    "iops",
    "bytes_per_s",
    "max_ms",
    "read_await_ms",
    "write_await_ms",
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "in_flight_peak",
    "read_bytes_per_io",
    "write_bytes_per_io",
)
_SPLIT_COLUMNS = (
    "reads_per_s",
    "writes_per_s",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "read_await_ms",
    "write_await_ms",
    "queue_ms",
    "service_ms",
    "in_flight",
)
_DISTRIBUTION_COLUMNS = (
    "iops",
    "p50_ms",
    "p99_ms",
    "p999_ms",
    "service_max_ms",
    "queue_p99_ms",
    "queue_max_ms",
    "tag_wait_ms",
    "max_ms",
)
_CHARTS = ("iops", "bytes_per_s", "await_ms", "queue_ms", "service_ms", "in_flight", "max_ms")
_TRACED = (TRACE, TRACE_GROUP, TRACER, SLOW_IO)
_ACTIVE = any_above("iops", "discards_per_s", "flushes_per_s", "in_flight")


def _report(option: str, help_: str, *busy: str, paths: bool = False) -> Report:
    """Make the report; all columns but the split ones fit into 80 characters."""
    return Report(
        option=option,
        help=help_,
        columns=(*_COLUMNS, *busy),
        split_columns=(*_SPLIT_COLUMNS, *busy),
        distribution_columns=_DISTRIBUTION_COLUMNS,
        averages=_averages,
        remarks=_path_remarks if paths else lambda _: (),
    )


DISKS = Subject(
    table="disks",
    title="disk",
    one="disk",
    fields=DISK_FIELDS,
    raw=(DISK,),
    exact_raw=_TRACED,
    derive=_derive,
    report=_report("-d", "Disks; what is shown when nothing else is asked for.", "busy_pct"),
    columns=_GRID,
    active=_ACTIVE,
    charts=(*_CHARTS, "busy_pct", "tag_wait_ms"),
    labels=_disk_labels,
    facts=_disk_facts,
)
PATHS = Subject(
    table="paths",
    title="path",
    one="path",
    fields=PATH_FIELDS,
    raw=(DISK, PATH_ERRORS, PATH_STATE),
    exact_raw=_TRACED,
    readers=path_readers,
    active=_ACTIVE,
    report=_report(
        "-L", "Paths: each way to a LUN, with its share of the LUN's I/Os.", "busy_pct", "lun_share_pct", paths=True
    ),
    charts=_CHARTS,
    labels=_path_labels,
    facts=_path_facts,
)
PORTS = Subject(
    table="hbas",
    title="port",
    one="HBA port",
    fields=PORT_FIELDS,
    raw=(DISK, PORT_ERRORS),
    sampled_raw=(GROUP,),
    exact_raw=_TRACED,
    readers=port_readers,
    active=_ACTIVE,
    # From the kernel's counters alone the busy time of a port is a range: paths may be busy at the same time.
    report=_report(
        "-H",
        "HBA ports: all paths through each together.",
        *("busy_pct", "busy_low_pct", "busy_high_pct", "limit_pct"),
    ),
    charts=_CHARTS,
    labels=_port_labels,
    facts=_port_facts,
)
_BUSY_RANGE = ("busy_pct", "busy_low_pct", "busy_high_pct")
TARGET_PORTS = Subject(
    table="target_ports",
    title="target",
    one="target port",
    fields=TARGET_FIELDS,
    raw=(DISK, PATH_ERRORS),
    exact_raw=_TRACED,
    active=_ACTIVE,
    report=_report("-T", "Target ports: all paths to each port of the storage together.", *_BUSY_RANGE),
    charts=_CHARTS,
    facts=_target_facts,
)
WHOLE_HOST = Subject(
    table="whole_host",
    title="host",
    one="whole host",
    many="whole hosts",
    fields=HOST_FIELDS,
    raw=(DISK, PATH_ERRORS),
    exact_raw=_TRACED,
    active=_ACTIVE,
    report=_report("--total", "The whole host: all its disks together, each I/O once.", *_BUSY_RANGE),
    charts=_CHARTS,
)
