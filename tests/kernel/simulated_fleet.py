"""Frames for simulated agents, and the state of a fleet of them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import numpy as np

from collectors.fleet.frames import PROTOCOL, encode
from collectors.fleet.host_summary import Summary
from collectors.fleet.sample_stream import SampleSender
from collectors.model import MISSING, Device, HostFacts, Rows, Sample, Table, Topology
from collectors.tables.block.schema import DISK, DISKSTATS_COLUMNS
from engine.version import version
from tests.kernel import simulated_agent

SECOND_NS = simulated_agent.SECOND_NS
FIRST_NS = 1000 * SECOND_NS


def simulated_command(folder: Path, *, disks: int, seconds: int) -> str:
    """Write what an agent of a host with so many busy disks sends; returns the command that plays it."""
    path = folder / "frames"
    hello = encode("hello", protocol=PROTOCOL, version=version(), host="simulated", time_ns=0)
    sender, summary = SampleSender(0), Summary("simulated")
    frames = [sender.frame(summary.of(sample, 0, 0)) for sample in _samples(disks, seconds)]
    path.write_bytes(b"".join([hello, b"%d\n" % FIRST_NS, *frames]))
    words = (sys.executable, "-S", "-E", str(Path(simulated_agent.__file__)), str(path))
    return f"exec {shlex.join(words)}"


def _samples(disks: int, seconds: int) -> list[Sample]:
    random = np.random.default_rng(disks)
    rows = Rows(tuple(f"sd{i}:8:{i}:{i}" for i in range(disks)), tuple(f"sd{i}" for i in range(disks)))
    devices = {
        key: Device(key, name, "disk", 8, 0, iostats=True) for key, name in zip(rows.keys, rows.names, strict=True)
    }
    topology = Topology(devices, HostFacts(kernel="6.18.0", cpus=4))
    values = np.full((disks, len(DISK.columns)), MISSING, np.uint64)
    counters = slice(0, len(DISKSTATS_COLUMNS))
    values[:, counters] = random.integers(0, 1 << 31, (disks, len(DISKSTATS_COLUMNS)), np.uint64)
    values[:, DISK.index("in_flight_now")] = 0
    samples = []
    for second in range(seconds):
        values = values.copy()
        values[:, counters] += random.integers(1, 900, (disks, len(DISKSTATS_COLUMNS)), np.uint64)
        at_ns = FIRST_NS + second * SECOND_NS
        samples.append(Sample(at_ns, at_ns, topology, {DISK.name: Table(DISK, rows, values)}))
    return samples
