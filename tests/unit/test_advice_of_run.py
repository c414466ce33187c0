"""Results and tables of devices as the rules read them: which disk is nearest to a target, tiers, epochs."""

from __future__ import annotations

import numpy as np

from collectors.advice.finding import Confidence, FindingKind
from collectors.advice.of_run import findings_of_run
from collectors.graph import Graph, Layer, Lun, Path, Port
from collectors.model import Device, FrameTable, Rows, Tier, Topology
from collectors.reports.run_devices import RunDevices
from engine.job.spec import Arrival, Backend, JobSpec, Knobs, Mode, TargetSpec
from engine.replacing import replace
from engine.results.cpu_use import CpuUse
from engine.results.result import RunResult
from tests.unit.synthetic import Io, epoch
from tests.unit.test_result import result_of


def run(*names: str, depth: int = 1, latency_ns: int = 1_000_000, mode: Mode = Mode.DIRECT) -> RunResult:
    """A second of I/Os in turn on some targets."""
    ios = [
        Io(target=number, latency_ns=latency_ns, at_s=at / 1000) for at in range(1000) for number in range(len(names))
    ]
    knobs = Knobs(queue_depth=depth, stripe_width=len(names), mode=mode)
    stats = epoch(ios, duration_s=1.0, knobs=knobs, targets=len(names))
    return result_of([stats], JobSpec(targets=tuple(map(TargetSpec, names)), knobs=knobs), names)


def device(key: str, kind: str = "disk") -> Device:
    return Device(key, key, kind, 8, 0)


def table(figures: dict[str, dict[str, float]], tier: Tier = Tier.KERNEL) -> FrameTable:
    names = dict.fromkeys(name for row in figures.values() for name in row)
    columns = {name: np.array([row.get(name, np.nan) for row in figures.values()]) for name in names}
    tiers = {name: np.full(len(figures), tier, np.uint8) for name in ("queue_ms", "service_ms")}
    return FrameTable(Rows(tuple(figures), tuple(figures)), columns, tiers)


def devices(
    users: dict[str, list[str]], figures: dict[str, dict[str, float]], *known: Device, tier: Tier = Tier.KERNEL
) -> RunDevices:
    topology = Topology({each.key: each for each in known})
    return RunDevices(1.0, 3, topology, {"disks": table(figures, tier)}, {"disks": users})


QUIET = {"iops": 1000.0, "in_flight": 0.9, "await_ms": 0.9}


def said(result: RunResult, found: RunDevices | None) -> dict[FindingKind, Confidence]:
    return {each.kind: each.confidence for each in findings_of_run(result, found)}


def test_loop_devices_are_the_disks_of_their_targets_and_the_disk_of_their_files_is_not() -> None:
    below = {"loop0": ["/a"], "vda": ["/a", "/b"], "loop1": ["/b"]}
    figures = {"loop0": QUIET, "vda": {**QUIET, "in_flight": 9.0}, "loop1": QUIET}
    known = (device("loop0", "loop"), device("vda"), device("loop1", "loop"))
    result = run("/a", "/b")
    (depth, shared) = findings_of_run(result, devices(below, figures, *known))
    assert [each.name for each in depth.evidence] == [
        "QD",
        "outstanding",
        "outstanding on loop0",
        "outstanding on loop1",
    ]
    assert (shared.kind, shared.about) == (FindingKind.FEW_DISKS, ("vda",))


def test_a_volume_is_above_its_disks_through_a_partition() -> None:
    below = {"dm-0": ["/a"], "sda": ["/a"], "sdb": ["/a"]}
    figures = {"dm-0": QUIET, "sda": {**QUIET, "iops": 990.0}, "sdb": {**QUIET, "iops": 10.0, "in_flight": 0.0}}
    found = devices(below, figures, device("dm-0", "dm"), device("sda"), device("sdb"))
    layers = (Layer("dm-0", "dm-0", "lvm", below=("sda1", "sdb")), Layer("sda1", "sda1", "partition", below=("sda",)))
    found = replace(found, topology=replace(found.topology, graph=Graph(layers=layers)))
    kinds = said(run("/a"), found)
    assert kinds == {FindingKind.OWN_DEPTH: Confidence.LIKELY, FindingKind.FEW_DISKS: Confidence.CERTAIN}


def test_confidence_is_by_the_tier_of_the_device() -> None:
    waits = {"sda": {"iops": 1000.0, "queue_ms": 5.0, "service_ms": 1.0, "in_flight": 6.0, "await_ms": 6.0}}
    result = run("/a", depth=6, latency_ns=6_000_000)
    by_tier = {
        tier: said(result, devices({"sda": ["/a"]}, waits, device("sda"), tier=tier))
        for tier in (Tier.KERNEL, Tier.SAMPLED, Tier.EXACT)
    }
    assert by_tier == {
        Tier.KERNEL: {},
        Tier.SAMPLED: {FindingKind.DEVICE: Confidence.HINT},
        Tier.EXACT: {FindingKind.DEVICE: Confidence.LIKELY},
    }


def test_paths_and_ports_are_read_with_their_states_and_speeds() -> None:
    paths = tuple(Path(key, key, "dm-0", port="p", access="active/optimized") for key in ("sdb", "sdc"))
    paths += (Path("sdd", "sdd", "dm-0", port="p", access="standby"),)
    ports = (Port("p", "host1", "fc", speed="8 Gbit"),)
    graph = Graph(ports=ports, luns=(Lun("dm-0", "dm-0", "dm"),), paths=paths)
    users = {"disks": {}, "paths": {path.key: ["/a"] for path in paths}, "hbas": {"p": ["/a"]}}
    rates = {"sdb": {"iops": 1000.0}, "sdc": {"iops": 0.0}, "sdd": {"iops": 0.0}}
    link = {"p": {"iops": 1000.0, "read_bytes_per_s": 790e6, "write_bytes_per_s": 0.0}}
    tables = {"paths": table(rates), "hbas": table(link)}
    found = RunDevices(1.0, 3, Topology(graph=graph), tables, users)
    result = run("/a", depth=2)
    assert said(result, found) == {FindingKind.ONE_PATH: Confidence.CERTAIN, FindingKind.PORT_SPEED: Confidence.LIKELY}
    unknown = replace(found, topology=Topology(graph=replace(graph, ports=(replace(ports[0], speed="unknown"),))))
    assert said(result, unknown) == {FindingKind.ONE_PATH: Confidence.CERTAIN}


def test_without_devices_only_the_load_is_judged() -> None:
    result = run("/a")
    assert said(result, None) == {FindingKind.OWN_DEPTH: Confidence.HINT}
    open_loop = replace(result, about=replace(result.about, job=replace(result.about.job, arrival=Arrival.POISSON)))
    assert said(open_loop, None) == {}
    assert said(run("/a", mode=Mode.BUFFERED), None) == {}
    assert said(replace(result, epochs=()), None) == {}


def test_of_several_epochs_the_surest_is_named_and_latencies_are_not_compared_with_disks() -> None:
    (first,) = run("/a").epochs
    busy = [
        replace(first, index=number, cpu=CpuUse(int(share * 1e9), 0, 0))
        for number, share in enumerate((0.92, 0.99, 0.5))
    ]
    result = replace(run("/a"), epochs=tuple(busy))
    assert result.about.engine.backend == Backend.URING
    (found,) = findings_of_run(result, devices({"sda": ["/a"]}, {"sda": QUIET}, device("sda")))
    assert (found.kind, found.confidence, found.where) == (FindingKind.DRIVER, Confidence.CERTAIN, "epoch 1")
