"""`lunscope scan`: the device graph from the HBA port to the filesystem."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import click

from collectors.model import Sample, Topology
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.reports.sheets.find import SheetKind, find_sheet
from collectors.reports.sheets.of_host import port_place, udev_links
from collectors.reports.sheets.path_history import path_histories
from collectors.reports.sheets.sheet import Sheet, SheetData, sheet_document, sheet_lines
from collectors.session.reader import SessionReader
from collectors.tables.block.error_readers import PathErrors, PortErrors
from collectors.topology.scanner import read_topology
from collectors.topology.state_age import state_age_s
from engine.errors import UsageError
from engine.guard.answers import quick_snapshot, use_words
from engine.hostfs.kernel_files import Roots
from engine.strict_json import dump_json
from tui.options.reading import reading_settings, root_options


@click.command(short_help="the device graph: HBA ports, paths, LUNs, what is built on them")
@click.option(
    "--from", "recording", type=click.Path(path_type=Path), metavar="FILE", help="The last graph of a recording."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.scan/1, or lunscope.sheet/1).")
@click.option("--lun", metavar="NAME", help="All that is known of one LUN: its map, groups, paths, timeouts, history.")
@click.option("--path", metavar="NAME", help="The same of one path: sda, or its address.")
@click.option("--port", metavar="NAME", help="The same of one HBA port: host3, nvme0, or its WWPN.")
@click.option("--target-port", metavar="NAME", help="The same of one port of the storage: its address or alias.")
@root_options
def command(
    *,
    recording: Path | None,
    as_json: bool,
    lun: str | None,
    path: str | None,
    port: str | None,
    target_port: str | None,
    procfs: Path,
    sysfs: Path,
) -> None:
    """Show HBA ports with their targets, then each LUN with its paths, and the devices and mounts built on it.

    PATH in capitals is one that takes no I/O; ! marks anomalies.
    """
    chosen = [
        (kind, name) for kind, name in zip(SheetKind, (lun, path, port, target_port), strict=True) if name is not None
    ]
    if len(chosen) > 1:
        raise UsageError("--lun, --path, --port and --target-port: give one of them, as each is a sheet of its own")
    if chosen:
        data = _data(procfs, sysfs) if recording is None else _recorded_data(recording)
        _print_sheet(find_sheet(*chosen[0], data), as_json=as_json)
        return
    topology, age_s = _read(procfs, sysfs) if recording is None else _recorded(recording)
    uses = _uses(topology, Roots(procfs, sysfs)) if recording is None else None
    if as_json:
        click.echo(dump_json(scan_document(topology, age_s, uses)))
        return
    for line in tree_lines(topology, uses or {}):
        click.echo(line)


def _uses(topology: Topology, roots: Roots) -> dict[str, str] | None:
    """Say what uses each LUN, as the guard finds it; None where mounts cannot be read."""
    snapshot = quick_snapshot(roots)
    try:
        return {lun.key: use_words(snapshot, topology.devices[lun.key].name) for lun in topology.graph.luns}
    except OSError:
        return None


def _read(procfs: Path, sysfs: Path) -> tuple[Topology, float]:
    """Return the topology of this host, and the age of its oldest state."""
    began_s = time.monotonic()
    topology = read_topology(procfs, sysfs, reading_settings())
    return topology, time.monotonic() - began_s


def _print_sheet(sheet: Sheet, *, as_json: bool) -> None:
    if as_json:
        click.echo(dump_json(sheet_document(sheet)))
        return
    for line in sheet_lines(sheet):
        click.echo(line)


def _data(procfs: Path, sysfs: Path) -> SheetData:
    """Read all that a sheet of this host needs; there is no history."""
    topology, age_s = _read(procfs, sysfs)
    graph, folder = topology.graph, str(sysfs)
    found = (PathErrors(folder).take(graph), PortErrors(folder).take(graph))
    tables = {table.schema.name: table for table in found if table is not None}
    places = {port.key: port_place(procfs, sysfs, port) for port in graph.ports}
    return SheetData(topology, tables, time.time_ns(), age_s, links=partial(udev_links, sysfs), places=places)


def _recorded_data(recording: Path) -> SheetData:
    """Read the same from the last sample of a recording, with the history of its events."""
    with SessionReader(recording) as reader:
        last = _last_sample(reader)
        history = path_histories(reader.events(), reader.start_ns, last.time_ns)
    return SheetData(last.topology, last.tables, last.time_ns, state_age_s(last.tables), history)


def _recorded(recording: Path) -> tuple[Topology, float]:
    """Return the last topology of a recording, and the age of its states in the last sample."""
    with SessionReader(recording) as reader:
        last = _last_sample(reader)
    return last.topology, state_age_s(last.tables)


def _last_sample(reader: SessionReader) -> Sample:
    last = reader.sample_at(len(reader) - 1) if len(reader) else None
    if last is None or not last.topology.graph.luns:
        why = "it was cut off within a second, an earlier version wrote it, or there were no disks"
        raise UsageError(f"{reader.path}: no device graph in it: {why}")
    return last
