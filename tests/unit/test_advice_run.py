"""What is said of a run from its figures and those of its devices, rule by rule, and when nothing may be said."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from collectors.advice.device_figures import FIELDS
from collectors.advice.figures import DeviceFigures, LoadFigures, RunFigures, TargetFigures
from collectors.advice.finding import Confidence, Finding, FindingKind, findings_document
from collectors.advice.run_rules import run_findings
from collectors.kernel.cpu_users import CpuUser
from collectors.model import Tier
from collectors.reports.documents.findings import finding_section
from engine.replacing import replace
from tests.unit.documents.printed import shown

HINT, LIKELY, CERTAIN = Confidence
EXACT, SAMPLED = ({"queue_ms": tier, "service_ms": tier} for tier in (Tier.EXACT, Tier.SAMPLED))


def target(name: str = "/dev/sda", *, latency_ms: float = 1.0, iops: float = 8000.0, **more: Any) -> TargetFigures:
    return TargetFigures(name, round(10 * iops), iops, latency_ms * 1e6, **more)


def load(*targets: TargetFigures, **more: Any) -> LoadFigures:
    """Eight outstanding on each target, in ten seconds."""
    targets = targets or (target(),)
    iops = sum(each.iops for each in targets)
    figures: dict[str, Any] = {
        "queue_depth": 8,
        "targets": targets,
        "duration_s": 10.0,
        "ios": round(10 * iops),
        "iops": iops,
        "latency_ns": sum(each.iops * each.latency_ns for each in targets) / iops,
        "given_targets": len(targets),
        "engine_share": 0.3,
        "waiting_share": 0.01,
        "host_busy_pct": 40.0,
    }
    return LoadFigures(**figures | more)


def disk(name: str = "sda", **more: Any) -> DeviceFigures:
    """As the load above sees it from the outside, by kernel counters alone."""
    figures = {"iops": 8000.0, "await_ms": 0.99, "in_flight": 7.9, "busy_pct": 100.0} | more.pop("figures", {})
    assert figures.keys() <= set(FIELDS), "no run has these figures"
    values: dict[str, Any] = {"key": name, "targets": (f"/dev/{name}",), "is_top": True, "is_lowest": True}
    return DeviceFigures(name, figures=figures, **values | more)


def waiting(queue_ms: float, service_ms: float, in_flight: float = 8.0) -> dict[str, float]:
    return {"queue_ms": queue_ms, "service_ms": service_ms, "in_flight": in_flight}


def path(name: str, iops: float, **more: Any) -> DeviceFigures:
    return DeviceFigures(name, name, ("/dev/dm-0",), {"iops": iops, **more.pop("figures", {})}, lun="dm", **more)


def port(name: str, iops: float, *, targets: tuple[str, ...] = ("/dev/sda",), **more: Any) -> DeviceFigures:
    return DeviceFigures(name, name, targets, {"iops": iops, **more.pop("figures", {})}, **more)


ONE = {"queue_depth": 1, "latency_ns": 0.125e6}
"""One I/O of 0.125 ms after another."""
IDLE = {"in_flight": 0.95, "await_ms": 0.12}
PAIR = (target("/dev/sda"), target("/dev/sdb"))
TWO_DISKS = load(*PAIR)

CASES: dict[str, tuple[RunFigures, FindingKind, Confidence]] = {
    "no thread of the engine waits": (RunFigures(load(engine_share=0.99)), FindingKind.DRIVER, CERTAIN),
    "its threads hardly wait": (RunFigures(load(engine_share=0.92)), FindingKind.DRIVER, LIKELY),
    "its threads wait for a processor": (RunFigures(load(waiting_share=0.12)), FindingKind.HOST_CPU, LIKELY),
    "its own rate": (RunFigures(load(rate_iops=8010.0)), FindingKind.OWN_RATE, CERTAIN),
    "targets outside the stripe width": (RunFigures(load(given_targets=4)), FindingKind.FEW_DISKS, CERTAIN),
    "a slow target, seen in I/Os over several": (
        RunFigures(load(target(waited_pct=5.0), target("/dev/sdb", waited_pct=40.0))),
        FindingKind.SLOW_TARGET,
        CERTAIN,
    ),
    "a slow target, seen in its mean": (
        RunFigures(load(target(), target("/dev/sdb", latency_ms=3.0))),
        FindingKind.SLOW_TARGET,
        LIKELY,
    ),
    "a target that is a little slower": (
        RunFigures(load(target(), target("/dev/sdb", latency_ms=1.3))),
        FindingKind.SLOW_TARGET,
        HINT,
    ),
    "one at a time": (RunFigures(load(**ONE), (disk(figures=IDLE),)), FindingKind.OWN_DEPTH, LIKELY),
    "one at a time, without counters": (RunFigures(load(**ONE)), FindingKind.OWN_DEPTH, HINT),
    "time above the disk": (
        RunFigures(load(latency_ns=4e6), (disk(figures={"await_ms": 0.5}),)),
        FindingKind.ABOVE_DEVICE,
        LIKELY,
    ),
    "waits for the driver": (
        RunFigures(load(), (disk(figures=waiting(0.8, 0.2), tiers=EXACT),)),
        FindingKind.DEVICE,
        LIKELY,
    ),
    "waits, sampled": (RunFigures(load(), (disk(figures=waiting(0.8, 0.2), tiers=SAMPLED),)), FindingKind.DEVICE, HINT),
    "one disk slower than its peer": (
        RunFigures(TWO_DISKS, (disk("sda"), disk("sdb", figures={"in_flight": 20.0}))),
        FindingKind.UNEQUAL_DEPTH,
        LIKELY,
    ),
    "one disk has all the load": (
        RunFigures(TWO_DISKS, (disk("sda", figures={"iops": 15900.0}), disk("sdb", figures={"iops": 100.0}))),
        FindingKind.FEW_DISKS,
        CERTAIN,
    ),
    "one member of an array has all the load": (
        RunFigures(
            load(target("/dev/md0")),
            (
                disk("md0", members=("sda", "sdb"), is_lowest=False),
                disk("sda", targets=("/dev/md0",), is_top=False),
                disk("sdb", targets=("/dev/md0",), is_top=False, figures={"iops": 3.0, "in_flight": 0.0}),
            ),
        ),
        FindingKind.FEW_DISKS,
        CERTAIN,
    ),
    "two targets on one disk": (
        RunFigures(load(target("/a"), target("/b")), (disk("sda", targets=("/a", "/b")),)),
        FindingKind.FEW_DISKS,
        CERTAIN,
    ),
    "one of two paths": (
        RunFigures(load(), (), (path("sdb", 7900.0), path("sdc", 100.0))),
        FindingKind.ONE_PATH,
        CERTAIN,
    ),
    "a path at its depth": (
        RunFigures(
            load(), (), (path("sdb", 8000.0, figures={"limit_pct": 98.0, "in_flight": 31.4, "queue_limit": 32}),)
        ),
        FindingKind.QUEUE_LIMIT,
        LIKELY,
    ),
    "one of two ports": (
        RunFigures(load(), (), (), (port("host1", 8000.0), port("host2", 10.0))),
        FindingKind.ONE_PORT,
        HINT,
    ),
    "a full link": (
        RunFigures(
            load(),
            (),
            (),
            (
                port(
                    "host1",
                    8000.0,
                    figures={"read_bytes_per_s": 760e6, "write_bytes_per_s": 0.0},
                    link_bytes_per_s=800e6,
                ),
            ),
        ),
        FindingKind.PORT_SPEED,
        LIKELY,
    ),
    "reads from memory": (
        RunFigures(load(direct=False, read_bytes_per_s=1e9), (disk(figures={"read_bytes_per_s": 1e6}),)),
        FindingKind.PAGE_CACHE,
        CERTAIN,
    ),
    "writes to memory": (
        RunFigures(load(direct=False, write_bytes_per_s=1e9), (disk(figures={"write_bytes_per_s": 1e6}),)),
        FindingKind.PAGE_CACHE,
        LIKELY,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_rule_says_it_with_its_confidence(name: str) -> None:
    run, kind, confidence = CASES[name]
    (found,) = run_findings(run)
    assert (found.kind, found.confidence) == (kind, confidence)
    assert found.evidence
    assert all(math.isfinite(each.value) for each in found.evidence)


SILENT: dict[str, RunFigures] = {
    "without devices": RunFigures(load()),
    "a disk with kernel counters alone, however busy": RunFigures(load(), (disk(),)),
    "what is called Q and S at the kernel tier": RunFigures(load(), (disk(figures=waiting(0.8, 0.2)),)),
    "Q without S": RunFigures(load(), (disk(figures={"queue_ms": 0.8}, tiers=EXACT),)),
    "a short Q": RunFigures(load(), (disk(figures=waiting(0.05, 0.01), tiers=EXACT),)),
    "a long S, which may be the queue of the device": RunFigures(
        load(), (disk(figures=waiting(0.1, 0.9), tiers=EXACT),)
    ),
    "Q of a disk with one I/O outstanding": RunFigures(
        load(), (disk(figures=waiting(0.8, 0.2, in_flight=1.0), tiers=EXACT),)
    ),
    "too few I/Os": RunFigures(load(ios=99, engine_share=1.0, given_targets=4)),
    "too short": RunFigures(load(duration_s=0.4, engine_share=1.0, given_targets=4)),
    "CPU time that is not known": RunFigures(load(engine_share=math.nan, host_busy_pct=math.nan)),
    "no processor is idle, and no thread waits for one": RunFigures(load(host_busy_pct=100.0)),
    "no processor is idle, and waits are not known": RunFigures(load(host_busy_pct=100.0, waiting_share=math.nan)),
    "a rate that is not reached": RunFigures(load(rate_iops=9000.0)),
    "one at a time, on a disk that others use": RunFigures(load(**ONE), (disk(figures={"in_flight": 3.0}),)),
    "one at a time, with pauses": RunFigures(load(**ONE, pauses=True)),
    "one at a time, in an open loop": RunFigures(load(**ONE, closed=False)),
    "one at a time, buffered": RunFigures(load(**ONE, direct=False, mode="buffered")),
    "one at a time in one queue": RunFigures(load(*PAIR, queue_depth=1, one_queue=True)),
    "a latency that is not known": RunFigures(load(queue_depth=1, latency_ns=math.nan)),
    "await that is not known": RunFigures(load(latency_ns=4e6), (disk(figures={"await_ms": math.nan}),)),
    "a short await of other I/Os": RunFigures(
        load(latency_ns=4e6), (disk(figures={"await_ms": 0.5, "iops": 20000.0}),)
    ),
    "a long latency of an open loop": RunFigures(
        load(latency_ns=4e6, closed=False), (disk(figures={"await_ms": 0.5}),)
    ),
    "equal targets and disks": RunFigures(TWO_DISKS, (disk("sda"), disk("sdb"))),
    "disks that differ a little": RunFigures(TWO_DISKS, (disk("sda"), disk("sdb", figures={"in_flight": 12.0}))),
    "one disk of two with counters": RunFigures(
        TWO_DISKS, (disk("sda"), DeviceFigures("sdb", "sdb", ("/dev/sdb",), is_top=True, is_lowest=True))
    ),
    "a slow target with few I/Os": RunFigures(load(target(), TargetFigures("/dev/sdb", 20, 2.0, 9e6))),
    "two paths in turn": RunFigures(load(), (), (path("sdb", 4000.0), path("sdc", 4000.0))),
    "the only usable path": RunFigures(load(), (), (path("sdb", 8000.0), path("sdc", 0.0, is_usable=False))),
    "paths without counters": RunFigures(load(), (), (path("sdb", math.nan), path("sdc", math.nan))),
    "idle paths": RunFigures(load(), (), (path("sdb", 3.0), path("sdc", 0.0))),
    "a path below its depth": RunFigures(load(), (), (path("sdb", 8000.0, figures={"limit_pct": 60.0}),)),
    "a path without a known depth": RunFigures(load(), (), (path("sdb", 8000.0, figures={"limit_pct": math.nan}),)),
    "ports of different targets": RunFigures(
        load(), (), (), (port("host1", 8000.0), port("host2", 10.0, targets=("/dev/sdb",)))
    ),
    "a link of unknown speed": RunFigures(load(), (), (), (port("host1", 8000.0, figures={"read_bytes_per_s": 9e9}),)),
    "buffered reads that the disks did": RunFigures(
        load(direct=False, read_bytes_per_s=1e9), (disk(figures={"read_bytes_per_s": 0.9e9}),)
    ),
    "buffered reads without counters": RunFigures(
        load(direct=False, read_bytes_per_s=1e9), (disk(figures={"read_bytes_per_s": math.nan}),)
    ),
    "buffered reads of files in memory": RunFigures(load(direct=False, read_bytes_per_s=1e9)),
}


@pytest.mark.parametrize("name", SILENT)
def test_without_evidence_nothing_is_said(name: str) -> None:
    assert run_findings(SILENT[name]) == ()


def said(run: RunFigures) -> list[tuple[FindingKind, Confidence]]:
    return [(found.kind, found.confidence) for found in run_findings(run)]


def test_busy_processors_make_less_of_what_latencies_say() -> None:
    above = disk(figures={"await_ms": 0.5})
    busy = RunFigures(load(latency_ns=4e6, waiting_share=0.2), (above,))
    assert said(busy) == [(FindingKind.HOST_CPU, LIKELY), (FindingKind.ABOVE_DEVICE, HINT)]
    busy = RunFigures(load(**ONE, waiting_share=0.2), (disk(figures=IDLE),))
    assert said(busy) == [(FindingKind.HOST_CPU, LIKELY), (FindingKind.OWN_DEPTH, HINT)]
    unknown = RunFigures(load(**ONE, waiting_share=math.nan, host_busy_pct=99.0), (disk(figures=IDLE),))
    assert said(unknown) == [(FindingKind.OWN_DEPTH, HINT)]
    not_waiting = RunFigures(load(**ONE, host_busy_pct=99.0), (disk(figures=IDLE),))
    assert said(not_waiting) == [(FindingKind.OWN_DEPTH, LIKELY)]
    assert said(RunFigures(load(**ONE, engine_share=0.95), (disk(figures=IDLE),))) == [(FindingKind.DRIVER, LIKELY)]


def test_who_took_the_processors_is_named() -> None:
    users = (CpuUser("gcc", 7, 61.0), CpuUser("sh", 8, 4.0))
    (found,) = run_findings(RunFigures(load(waiting_share=0.2, host_busy_pct=99.0, cpu_users=users)))
    assert [(each.name, each.value) for each in found.evidence] == [
        ("waited for a CPU", 20.0),
        ("host CPU", 99.0),
        ("CPU of gcc (7)", 61.0),
    ]


def test_a_depth_of_one_is_a_hint_where_the_time_is_spent_above_the_disk() -> None:
    slow = target(iops=250.0, latency_ms=4.0)
    run = RunFigures(load(slow, queue_depth=1), (disk(figures={"iops": 250.0, "await_ms": 0.1, "in_flight": 0.03}),))
    assert said(run) == [(FindingKind.ABOVE_DEVICE, LIKELY), (FindingKind.OWN_DEPTH, HINT)]


def test_the_advice_about_threads_needs_a_processor_for_them() -> None:
    free, full = (
        next(found for found in run_findings(RunFigures(run)) if found.kind is FindingKind.DRIVER)
        for run in (load(engine_share=0.99, threads=2), load(engine_share=0.99, host_busy_pct=99.0))
    )
    assert "--threads 4" in free.text
    assert "--threads" not in full.text


def test_the_depth_that_would_do_is_what_the_driver_holds() -> None:
    run = RunFigures(load(queue_depth=64), (disk(figures=waiting(7.0, 1.0, in_flight=64.0), tiers=EXACT),))
    (found,) = run_findings(run)
    assert "about 8 outstanding" in found.text
    assert {each.name: each.value for each in found.evidence} == {
        "Q": 7.0,
        "S": 1.0,
        "outstanding": 64.0,
        "busy": 100.0,
    }


def both() -> tuple[Finding, ...]:
    sampled = disk(figures=waiting(0.8, 0.2), tiers=SAMPLED)
    return run_findings(RunFigures(load(given_targets=4, rate_iops=8000.0), (sampled,)))


def test_limits_are_first_and_the_surest_of_them() -> None:
    order = [(found.section, found.confidence) for found in both()]
    assert order == [("limit", CERTAIN), ("limit", HINT), ("advice", CERTAIN)]


def test_text_and_document_have_the_figures_with_units_and_tiers() -> None:
    lines = shown([finding_section({"findings": findings_document(both())})]).splitlines()
    assert lines[1].startswith("- limit: the load reaches the rate")
    assert "  IOPS 8,000; rate 8,000 IOPS" in lines
    assert "  Q 0.8 ms (sampled); S 0.2 ms (sampled); outstanding 8; busy 100 %" in lines
    assert any(line.startswith("- advice: the load is on 1 of 4 targets") for line in lines)
    rate, device, disks = json.loads(json.dumps(findings_document(both()), allow_nan=False))
    assert (rate["kind"], rate["section"], rate["confidence"], rate["where"]) == ("own_rate", "limit", "certain", None)
    assert device["about"] == ["sda"]
    assert device["evidence"][0] == {"name": "Q", "value": 0.8, "unit": "ms", "source": "sampled"}
    assert device["evidence"][2]["source"] == "kernel"
    assert disks["evidence"] == [
        {"name": "stripe width", "value": 1, "unit": "", "source": "load"},
        {"name": "targets", "value": 4, "unit": "", "source": "load"},
    ]


def test_one_flow_is_said_of_iscsi_alone() -> None:
    texts = [
        run_findings(RunFigures(load(), (), (replace(one, transport=name), path("sdc", 0.0))))[0].text
        for one in (path("sdb", 8000.0),)
        for name in ("iscsi", "fc", "nvme-tcp")
    ]
    assert ["TCP" in text for text in texts] == [True, False, False]
