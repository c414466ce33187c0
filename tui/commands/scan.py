"""`lunscope scan`: the device graph from the HBA port to the filesystem."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from collectors.model import Topology
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.session.reader import SessionReader
from collectors.topology.scanner import read_topology
from collectors.topology.state_age import state_age_s
from engine.errors import LunscopeError
from tui.options.reading import reading_settings, root_options


@click.command(short_help="the device graph: HBA ports, paths, LUNs, what is built on them")
@click.option(
    "--from", "recording", type=click.Path(path_type=Path), metavar="FILE", help="The last graph of a recording."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.scan/1).")
@root_options
def command(*, recording: Path | None, as_json: bool, procfs: Path, sysfs: Path) -> None:
    """Show HBA ports with their targets, then each LUN with its paths, and the devices and mounts built on it.

    PATH in capitals is one that takes no I/O; ! marks anomalies.
    """
    topology, age_s = _read(procfs, sysfs) if recording is None else _recorded(recording)
    if as_json:
        click.echo(json.dumps(scan_document(topology, age_s), allow_nan=False))
        return
    for line in tree_lines(topology):
        click.echo(line)


def _read(procfs: Path, sysfs: Path) -> tuple[Topology, float]:
    """Return the topology of this host, and the age of its oldest state."""
    began_s = time.monotonic()
    topology = read_topology(procfs, sysfs, reading_settings())
    return topology, time.monotonic() - began_s


def _recorded(recording: Path) -> tuple[Topology, float]:
    """Return the last topology of a recording, and the age of its states in the last sample."""
    with SessionReader(recording) as reader:
        last = reader.sample_at(len(reader) - 1) if len(reader) else None
    if last is None or not last.topology.graph.luns:
        why = "it was cut off within a second, an earlier version wrote it, or there were no disks"
        raise LunscopeError(f"{recording}: no device graph in it: {why}")
    return last.topology, state_age_s(last.tables)
