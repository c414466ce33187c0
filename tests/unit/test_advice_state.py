"""Findings from settings and caches: where each is said, where not, and that its command is one that `tune` takes."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest

from collectors.advice.finding import Finding, FindingKind, findings_document
from collectors.advice.point_devices import state_document, state_findings_of
from collectors.advice.state_rules import DeviceStates, state_findings
from collectors.graph import Graph, Layer, Lun, Port
from collectors.graph import Path as GraphPath
from collectors.model import Device, FrameTable, Rows, Topology
from collectors.reports.documents.findings import finding_section
from collectors.reports.run_devices import RunDevices
from engine.replacing import replace
from engine.tune.registry import TUNABLES
from tests.unit.documents.printed import shown


def device(name: str, **facts: object) -> Device:
    facts = {"rotational": False, "scheduler": "none", "nr_requests": 256, "iostats": True} | facts
    return Device(f"{name}:8:0", name, "disk", 8, 0, **facts)  # type: ignore[arg-type]


def topology(*devices: Device, **records: object) -> Topology:
    return Topology({each.key: each for each in devices}, graph=Graph(**records))  # type: ignore[arg-type]


def figures(name: str, table: dict[str, float]) -> FrameTable:
    rows = Rows((f"{name}:8:0",), (name,))
    return FrameTable(rows, {field: np.array([value]) for field, value in table.items()})


def cache(key: str, name: str, **values: float) -> FrameTable:
    return FrameTable(Rows((key,), (name,)), {field: np.array([value]) for field, value in values.items()})


def found(state: DeviceStates, only: tuple[str, ...] | None = None) -> dict[FindingKind, Finding]:
    findings = list(state_findings(state, only))
    assert len({each.kind for each in findings}) == len(findings)
    return {each.kind: each for each in findings}


def multipath(*limits: int | None, address: str = "1:0:0:0") -> Topology:
    names = [f"sd{chr(97 + at)}" for at in range(len(limits))]
    paths = tuple(
        GraphPath(f"{name}:8:0", name, "dm-0:8:0", address=address, queue_limit=limit)
        for name, limit in zip(names, limits, strict=True)
    )
    luns = (Lun("dm-0:8:0", "dm-0", "dm"),)
    return topology(*(device(name) for name in ("dm-0", *names)), luns=luns, paths=paths)


def test_paths_of_one_lun_with_unequal_limits() -> None:
    state = DeviceStates(multipath(64, 64, 16))
    finding = found(state)[FindingKind.UNEQUAL_LIMIT]
    assert "1 x 16, 2 x 64" in finding.text
    assert finding.command == "lunscope tune set queue_depth=64 --on lun:dm-0 --keep"
    assert ("limit of sdc", 16) in [(each.name, each.value) for each in finding.evidence]
    assert FindingKind.UNEQUAL_LIMIT in found(state, ("sdb:8:0",))
    assert found(state, ("sdz:8:0",)) == {}
    assert found(DeviceStates(multipath(64, 64, 64))) == {}
    assert found(DeviceStates(multipath(64, None))) == {}
    assert found(DeviceStates(multipath(64, 32, address="nvme0 nsid 1")))[FindingKind.UNEQUAL_LIMIT].command == ""


def test_members_of_a_stripe_with_unequal_limits_and_a_mirror_without() -> None:
    members = [device("sda", queue_limit=32), device("sdb", queue_limit=64)]
    paths = tuple(GraphPath(each.key, each.name, each.key, address="0:0:0:1") for each in members)
    below = tuple(each.key for each in members)
    stripe = Layer("md0:9:0", "md0", "raid0", below=below)
    finding = found(DeviceStates(topology(*members, layers=(stripe,), paths=paths)))[FindingKind.UNEQUAL_LIMIT]
    assert finding.command == "lunscope tune set queue_depth=64 --on sda --on sdb --keep"
    assert found(DeviceStates(topology(*members, layers=(replace(stripe, kind="raid1"),), paths=paths))) == {}


def test_disks_of_a_load_with_unequal_limits_are_said_as_those_of_a_stripe() -> None:
    disks = [device("sda", queue_limit=32), device("sdb", queue_limit=64)]
    paths = tuple(GraphPath(each.key, each.name, each.key, address="0:0:0:1") for each in disks)
    host = topology(*disks, paths=paths)
    keys = tuple(each.key for each in disks)
    finding = found(DeviceStates(host, stripe=keys))[FindingKind.UNEQUAL_LIMIT]
    assert finding.text.startswith("the disks of the load admit different numbers of commands (1 x 32, 1 x 64)")
    assert finding.command == "lunscope tune set queue_depth=64 --on sda --on sdb --keep"
    assert finding.about == ("sda",)
    assert found(DeviceStates(host, stripe=keys[:1])) == {}
    assert found(DeviceStates(host)) == {}


def test_a_lun_of_a_load_admits_what_its_paths_admit_together() -> None:
    """Two LUNs of which one has fewer paths: nothing that a queue depth of one device would mend."""
    names = {"dm-0": ("sda", "sdb"), "dm-1": ("sdc",)}
    paths = tuple(
        GraphPath(f"{name}:8:0", name, f"{lun}:8:0", address="1:0:0:0", queue_limit=32)
        for lun, members in names.items()
        for name in members
    )
    luns = tuple(Lun(f"{name}:8:0", name, "dm") for name in names)
    host = topology(*(device(name) for name in (*names, "sda", "sdb", "sdc")), luns=luns, paths=paths)
    finding = found(DeviceStates(host, stripe=("dm-0:8:0", "dm-1:8:0")))[FindingKind.UNEQUAL_LIMIT]
    assert "1 x 32, 1 x 64" in finding.text
    assert finding.command == ""
    unknown = replace(host.graph, paths=(*paths[:2], replace(paths[2], queue_limit=None)))
    assert found(DeviceStates(Topology(host.devices, graph=unknown), stripe=("dm-0:8:0", "dm-1:8:0"))) == {}


def test_a_port_that_takes_fewer_commands_than_the_load_keeps_through_it() -> None:
    ports = (Port("host0", "host0", "fc", queue_limit=100), Port("host1", "host1", "fc", queue_limit=1000))
    paths = tuple(
        GraphPath(f"sd{at}:8:0", f"sd{at}", "dm-0:8:0", port=f"host{at % 2}", state="running", queue_limit=64)
        for at in range(4)
    )
    host = topology(device("dm-0"), luns=(Lun("dm-0:8:0", "dm-0", "dm"),), paths=paths, ports=ports)
    finding = found(DeviceStates(host, depths={"dm-0:8:0": 1000.0}))[FindingKind.QUEUE_LIMIT]
    assert "keeps 128 commands outstanding through port host0, which takes 100 (can_queue)" in finding.text
    assert found(DeviceStates(host, depths={"dm-0:8:0": 196.0})) == {}
    assert found(DeviceStates(host, depths={"dm-0:8:0": float("nan")})) == {}
    assert found(DeviceStates(host)) == {}


def test_a_limit_that_fell_and_one_that_did_not() -> None:
    now = multipath(16, 16)
    reduced = found(DeviceStates(now, former_limits={"sda:8:0": 64, "sdb:8:0": 16, "gone:8:0": 5}))
    assert "fell from 64 to 16" in reduced[FindingKind.REDUCED_LIMIT].text
    assert reduced[FindingKind.REDUCED_LIMIT].about == ("sda",)


def test_accounting_off() -> None:
    finding = found(DeviceStates(topology(device("vda", iostats=False))))[FindingKind.UNCOUNTED]
    assert finding.command == "lunscope tune set iostats=1 --on vda --keep"
    assert found(DeviceStates(topology(device("vda"), device("vdb", iostats=None)))) == {}


@pytest.mark.parametrize(
    ("depth", "in_flight", "scheduler", "command"),
    [
        (512, 40.0, "mq-deadline", "lunscope tune set nr_requests=512 --on vda --keep"),
        (300, 40.0, "none", ""),
        (None, 250.0, "mq-deadline", "lunscope tune set nr_requests=512 --on vda --keep"),
        (256, 200.0, "none", None),
        (None, float("nan"), "none", None),
    ],
)
def test_fewer_requests_than_the_depth_in_use(
    depth: float | None, in_flight: float, scheduler: str, command: str | None
) -> None:
    """Without a scheduler no more requests are possible than the hardware has tags."""
    host = topology(device("vda", scheduler=scheduler, queue_limit=256))
    state = DeviceStates(
        host, figures("vda", {"in_flight": in_flight}), depths={} if depth is None else {"vda:8:0": depth}
    )
    finding = found(state).get(FindingKind.FEW_REQUESTS)
    assert (None if finding is None else finding.command) == command


@pytest.mark.parametrize(
    ("scheduler", "rotational", "iops", "is_said"),
    [
        ("bfq", False, 50_000.0, True),
        ("mq-deadline", False, 50_000.0, True),
        ("bfq", False, 900.0, False),
        ("bfq", True, 50_000.0, False),
        ("none", False, 50_000.0, False),
    ],
)
def test_a_scheduler_on_a_fast_device(scheduler: str, *, rotational: bool, iops: float, is_said: bool) -> None:
    host = topology(device("nvme0n1", scheduler=scheduler, rotational=rotational))
    finding = found(DeviceStates(host, figures("nvme0n1", {"iops": iops}))).get(FindingKind.SCHEDULER)
    assert (finding is not None) == is_said
    if finding is not None:
        assert finding.command == "lunscope tune set scheduler=none --on nvme0n1 --keep"


CUT = {"iops": 800.0, "bytes_per_s": 100.0 * (1 << 20), "whole_per_s": 100.0, "parts_per_io": 8.0}


@pytest.mark.parametrize(
    ("limit_kb", "most_kb", "words", "command"),
    [
        (
            128,
            1280,
            "by max_sectors_kb of vda: raise it to 1024",
            "lunscope tune set max_sectors_kb=1024 --on vda --keep",
        ),
        (128, 512, "by max_sectors_kb of vda: raise it to 512", "lunscope tune set max_sectors_kb=512 --on vda --keep"),
        (128, 128, "by max_sectors_kb of vda: use smaller I/Os", ""),
    ],
)
def test_ios_that_are_cut_name_the_limit(limit_kb: int, most_kb: int, words: str, command: str) -> None:
    host = topology(device("vda", max_sectors_kb=limit_kb, max_hw_sectors_kb=most_kb))
    finding = found(DeviceStates(host, figures("vda", CUT)))[FindingKind.SPLIT]
    assert finding.text.startswith("I/Os of 1024 KiB become 8.00 requests of 128 KiB at vda, ")
    assert words in finding.text
    assert finding.command == command


def test_requests_that_began_before_the_interval_do_not_double_the_limit_that_is_wanted() -> None:
    host = topology(device("vda", max_sectors_kb=128, max_hw_sectors_kb=4096))
    for parts, wanted_kb in ((8.03, 1024), (8.2, 2048)):
        finding = found(DeviceStates(host, figures("vda", CUT | {"parts_per_io": parts})))[FindingKind.SPLIT]
        assert f"max_sectors_kb={wanted_kb} " in finding.command


@pytest.mark.parametrize(
    "changed",
    [
        {"parts_per_io": 1.02},
        {"parts_per_io": 1.2, "bytes_per_s": 1e6},
        {"parts_per_io": float("nan")},
        {"iops": 0.0},
    ],
)
def test_whole_ios_and_few_ones_are_no_finding(changed: dict[str, float]) -> None:
    host = topology(device("vda", max_sectors_kb=128, max_hw_sectors_kb=1280))
    assert FindingKind.SPLIT not in found(DeviceStates(host, figures("vda", CUT | changed)))


@pytest.mark.parametrize(
    ("limits", "part_kb", "words", "confidence"),
    [
        ({"max_sectors_kb": 1280, "max_segments": 32}, 128, "by max_segments of vda, 32 pieces of memory", "certain"),
        ({"max_sectors_kb": 1280, "chunk_kb": 128}, 128, "by the chunk of vda, 128 KiB: its borders cut", "certain"),
        (
            {"max_sectors_kb": 1280, "max_segments": 128, "virt_boundary_mask": 4095},
            20,
            "by one of max_sectors_kb (1280), max_segments (128), virt_boundary_mask (4095), which the mean size",
            "hint",
        ),
        ({"max_sectors_kb": 1280}, 20, "by max_sectors_kb (1280), which the mean size", "hint"),
        ({}, 20, "by a limit that is not known, which", "hint"),
    ],
)
def test_the_limit_that_made_the_parts_is_named_or_said_as_one_of(
    limits: dict[str, int], part_kb: int, words: str, confidence: str
) -> None:
    host = topology(device("vda", max_hw_sectors_kb=1280, **limits))
    seen = CUT | {"bytes_per_s": CUT["iops"] * part_kb * 1024}
    finding = found(DeviceStates(host, figures("vda", seen)))[FindingKind.SPLIT]
    assert words in finding.text
    assert finding.confidence.word == confidence
    assert finding.command == ""


def test_a_stripe_cuts_at_the_borders_of_its_chunks() -> None:
    """Parts on one member that follow each other may be merged again."""
    host = topology(
        device("md0", bio_based=True, slaves=("sda", "sdb"), max_sectors_kb=1280, chunk_kb=64),
        *(device(name, max_sectors_kb=1280) for name in ("sda", "sdb")),
    )
    for parts in (4.0, 2.0):
        seen = {"iops": 100.0, "bytes_per_s": 25.0 * (1 << 20), "ios_below_ratio": parts, "bytes_below_ratio": 1.0}
        finding = found(DeviceStates(host, figures("md0", seen)))[FindingKind.SPLIT]
        assert f"I/Os of 256 KiB become {parts:.2f} requests" in finding.text
        assert "by the chunk of md0, 64 KiB" in finding.text


def test_an_array_that_cuts_names_the_member_whose_limit_it_has() -> None:
    """Bytes that are written twice are no cuts."""
    limits = {"md0": 128, "sda": 1280, "sdb": 128}
    facts = {"md0": {"bio_based": True, "slaves": ("sda", "sdb")}}
    host = topology(
        *(
            device(name, max_sectors_kb=limit, max_hw_sectors_kb=1280, **facts.get(name, {}))
            for name, limit in limits.items()
        )
    )
    seen = {"iops": 100.0, "bytes_per_s": 100.0 * (1 << 20), "ios_below_ratio": 8.0, "bytes_below_ratio": 1.0}
    finding = found(DeviceStates(host, figures("md0", seen)))[FindingKind.SPLIT]
    assert "become 8.00 requests of 128 KiB at md0, by max_sectors_kb of sdb: raise it to 1024" in finding.text
    assert finding.command == "lunscope tune set max_sectors_kb=1024 --on sdb --on md0 --keep"
    assert found(DeviceStates(host, figures("md0", seen | {"bytes_below_ratio": 2.0}))) == {}


def test_full_and_bypassed_caches() -> None:
    host = topology(device("dm-3", friendly_name="db"))
    full = cache("dm-writecache|dm-3:8:0", "dm-3 dm-writecache", blocked_per_s=40.0, dirty_pct=99.0)
    finding = found(DeviceStates(host, caches=full))[FindingKind.CACHE_FULL]
    assert finding.command == "dmsetup message db 0 flush"
    assert [(each.name, each.value, each.unit) for each in finding.evidence] == [
        ("blocked", 40, "/s"),
        ("dirty", 99, "%"),
    ]
    calm = cache("dm-writecache|dm-3:8:0", "dm-3 dm-writecache", blocked_per_s=0.0, dirty_pct=50.0)
    assert found(DeviceStates(host, caches=calm)) == {}
    none = cache("bcache|dm-3:8:0", "dm-3 bcache none", bypass_pct=100.0, bypasses_per_s=500.0)
    assert (
        "bcache.cache_mode=writethrough" in found(DeviceStates(host, caches=none))[FindingKind.CACHE_BYPASSED].command
    )
    cutoff = cache("bcache|dm-3:8:0", "dm-3 bcache writeback", bypass_pct=80.0, bypasses_per_s=500.0)
    assert found(DeviceStates(host, caches=cutoff))[FindingKind.CACHE_BYPASSED].command.endswith("sequential_cutoff")
    pool = cache("zfs|tank", "tank zfs", bypass_pct=75.0, bypasses_per_s=900.0)
    finding = found(DeviceStates(host, caches=pool))[FindingKind.CACHE_BYPASSED]
    assert "75 % of the reads of tank zfs never met the cache" in finding.text
    assert finding.command == "zfs set direct=disabled tank"
    hostile = cache("zfs|a; reboot", "a; reboot zfs", bypass_pct=75.0, bypasses_per_s=900.0)
    assert found(DeviceStates(host, caches=hostile))[FindingKind.CACHE_BYPASSED].command == ""


def test_every_tunable_of_a_command_exists() -> None:
    host = multipath(64, 16)
    devices = {**host.devices, "vda:8:0": device("vda", iostats=False, scheduler="bfq")}
    state = DeviceStates(
        Topology(devices, graph=host.graph),
        figures("vda", {"iops": 90_000.0, "in_flight": 255.0}),
        former_limits={"sda:8:0": 99},
    )
    commands = [shlex.split(each.command) for each in state_findings(state)]
    assert len(commands) == 5
    assert {words[3].partition("=")[0] for words in commands} <= {each.id for each in TUNABLES}


def test_text_and_json_have_the_command() -> None:
    finding = found(DeviceStates(topology(device("vda", iostats=False))))[FindingKind.UNCOUNTED]
    (document,) = findings_document([finding])
    text = shown([finding_section({"findings": [document]})])
    assert text.endswith("  to change it: lunscope tune set iostats=1 --on vda --keep")
    assert document["command"] == finding.command


def test_a_point_keeps_its_cache_and_its_findings() -> None:
    host = topology(device("dm-3", iostats=False))
    caches = cache("dm-cache|dm-3:8:0", "dm-3 dm-cache writeback", hit_pct=90.0, lookups_per_s=10.0)
    disks = figures("dm-3", {"iops": 5.0})
    devices = RunDevices(1.0, 2, host, {"disks": disks}, {"disks": {"dm-3:8:0": ["a"]}}, caches)
    document = json.loads(json.dumps(state_document(devices)))
    assert document["cache"]["hit_pct"] == 90.0
    assert document["cache"]["bypass_pct"] is None
    (finding,) = state_findings_of(document)
    assert (finding.kind, finding.command) == (FindingKind.UNCOUNTED, "lunscope tune set iostats=1 --on dm-3 --keep")
    assert list(state_findings_of(None)) == []
    assert list(state_findings_of({"advice": [{"kind": "new"}, 3]})) == []
