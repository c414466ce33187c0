"""What is said of a sweep: loads that are too low or too high, block sizes, modes, and when nothing may be said."""

from __future__ import annotations

import math
from typing import Any

import pytest

from collectors.advice.finding import Confidence, Finding, FindingKind
from collectors.advice.of_sweep import findings_of_sweep
from collectors.advice.sweep_rules import LoadCurve, LoadPoint, curve_findings
from engine.job.spec import Arrival, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.sweep.axes import parse_axis
from engine.sweep.knee import answer
from engine.sweep.plan import make_plan
from engine.sweep.runner import CurveResult, SweepResult
from engine.sweep.target_share import TargetShare
from engine.sweep.trial import Trial
from tests.unit.sweep.queue_model import Curve, ModelDevice, corner, flat, rising, sweep

HINT, LIKELY, CERTAIN = Confidence


def points(*iops: float, first: float = 1.0, **more: Any) -> tuple[LoadPoint, ...]:
    """Loads that double; latency is that of Little's law."""
    figures: dict[str, Any] = {"spread": 0.02, "count": 2, "depth_share": 1.0} | more
    loads = [first * 2**number for number in range(len(iops))]
    return tuple(
        LoadPoint(at, rate, at / max(rate, 1e-9) * 1e9, **figures) for at, rate in zip(loads, iops, strict=True)
    )


def curve(*iops: float, key: str = "qd", **more: Any) -> LoadCurve:
    return LoadCurve("", key, points(*iops, **more))


def said(*curves: LoadCurve) -> list[tuple[FindingKind, Confidence]]:
    return [(found.kind, found.confidence) for found in curve_findings(curves)]


@pytest.mark.parametrize(
    ("given", "kind", "confidence"),
    [
        (curve(100, 200, 400), FindingKind.OWN_DEPTH, CERTAIN),
        (curve(100, 200, 400, count=1), FindingKind.OWN_DEPTH, LIKELY),
        (curve(100, 200, 230), FindingKind.OWN_DEPTH, HINT),
        (curve(100, 200, 270, spread=0.09), FindingKind.OWN_DEPTH, HINT),
        (curve(100, 200, 400, key="threads"), FindingKind.DRIVER, CERTAIN),
        (curve(100, 200, 400, key="stripe_width"), FindingKind.FEW_DISKS, CERTAIN),
        (curve(100, 200, 201, 200), FindingKind.DEPTH_TOO_HIGH, CERTAIN),
        (curve(100, 200, 201, 200, count=1), FindingKind.DEPTH_TOO_HIGH, LIKELY),
        (curve(100, 200, 150, 120, spread=0.08), FindingKind.DEPTH_TOO_HIGH, LIKELY),
        (curve(100, 101, 100, key="threads"), FindingKind.DEPTH_TOO_HIGH, CERTAIN),
    ],
)
def test_a_curve_that_rises_or_only_waits_is_called_that(
    given: LoadCurve, kind: FindingKind, confidence: Confidence
) -> None:
    assert said(given) == [(kind, confidence)]


@pytest.mark.parametrize(
    "given",
    [
        curve(100),
        curve(100, 105),
        curve(100, 200, 215),
        curve(100, 200, 400, spread=0.11),
        curve(100, 200, 400, is_steady=False),
        curve(100, 200, 400, depth_share=0.3),
        curve(100, 200, 400, depth_share=math.nan),
        curve(100, 200, 400, key=""),
        curve(100, 118, spread=0.095, first=3),
        replace(
            curve(100, 200, 200), points=tuple(replace(each, latency_ns=1e6) for each in points(100, 200, 200, 199))
        ),
        curve(100, 100, 100, key="stripe_width"),
        curve(0, 0, 0),
    ],
)
def test_a_curve_that_may_be_either_is_called_nothing(given: LoadCurve) -> None:
    assert said(given) == []


def sized(block: int, iops: float, **more: Any) -> LoadCurve:
    return LoadCurve(
        f"bs={block}",
        "",
        points(iops, bytes_per_s=iops * block, **more),
        {"bs": str(block)},
        block_bytes=block,
    )


def test_block_sizes_have_a_goal_each() -> None:
    blocks = (sized(4096, 10_000), sized(8192, 9_500), sized(16384, 6_000), sized(65536, 2_400), sized(1 << 20, 160))
    (found,) = curve_findings(blocks)
    assert (found.kind, found.confidence) == (FindingKind.BLOCK_SIZE, LIKELY)
    assert "at most 8" in found.text
    assert "at least 64" in found.text


@pytest.mark.parametrize(
    "blocks",
    [
        (sized(4096, 10_000),),
        (sized(4096, 10_000), sized(8192, 9_900)),
        (sized(4096, 10_000), sized(65536, 2_400, spread=0.2)),
        (sized(4096, 10_000), replace(sized(65536, 2_400), block_bytes=math.nan)),
    ],
)
def test_block_sizes_of_one_goal_or_without_good_figures_are_not_named(blocks: tuple[LoadCurve, ...]) -> None:
    assert said(*blocks) == []


def moded(mode: str, iops: float, **more: Any) -> LoadCurve:
    return LoadCurve(f"mode={mode}", "", points(iops, **more), {"mode": mode})


def test_the_faster_mode_is_a_hint_where_it_may_be_memory() -> None:
    assert said(moded("direct", 900), moded("buffered", 500)) == [(FindingKind.MODE, LIKELY)]
    assert said(moded("direct", 900), moded("buffered", 50_000)) == [(FindingKind.MODE, HINT)]
    assert said(moded("direct", 900), moded("buffered", 850)) == []
    assert said(moded("direct", 900, spread=0.2), moded("buffered", 500)) == []
    assert said(moded("direct", 900, spread=0.08), moded("buffered", 800, spread=0.08)) == []


def result(law: Curve, *axes: str, job: JobSpec | None = None, **changes: Any) -> SweepResult:
    plan = make_plan(job or JobSpec(), tuple(map(parse_axis, axes or ("qd=1..64",))))
    curves = []
    for each in plan.curves:
        device = ModelDevice(law, 1, noise=0.01)
        sweep(device, each.search.loads)
        trials = tuple(replace(trial, **changes) for trial in device.trials)
        curves.append(CurveResult(each, trials, answer(trials)))
    return SweepResult(plan, tuple(curves), "complete", (), 90.0)


def kinds(found: tuple[Finding, ...]) -> list[FindingKind]:
    return [each.kind for each in found]


def test_known_devices_are_called_what_they_are() -> None:
    assert kinds(findings_of_sweep(result(rising))) == [FindingKind.OWN_DEPTH]
    unknown, found = findings_of_sweep(result(corner(16)))
    assert (unknown.kind, found.kind) == (FindingKind.UNKNOWN, FindingKind.DEPTH_TOO_HIGH)
    assert {"qd=16", "qd=17", "qd=15"} & set(found.text.replace(" only", "").split())
    _, found = findings_of_sweep(result(flat))
    assert "above qd=1 " in found.text


def test_each_curve_is_named() -> None:
    found = findings_of_sweep(result(rising, "qd=1..64", "bs=4k,8k"))
    assert [each.where for each in found if each.kind is FindingKind.OWN_DEPTH] == ["bs=4k", "bs=8k"]


@pytest.mark.parametrize(
    "job",
    [
        JobSpec(knobs=Knobs(rate_iops=1e6)),
        JobSpec(think_s=0.1),
        JobSpec(arrival=Arrival.POISSON, knobs=Knobs(rate_iops=9)),
    ],
)
def test_loads_that_do_not_keep_their_depth_are_not_judged(job: JobSpec) -> None:
    found = findings_of_sweep(replace(result(rising), plan=replace(result(rising).plan, job=job)))
    assert kinds(found) == [FindingKind.UNKNOWN]


def test_nothing_is_said_of_failing_targets_and_points_that_never_were_steady() -> None:
    for changes in ({"failing": ("disk a",)}, {"is_settled": False}):
        (found,) = findings_of_sweep(result(rising, **changes))
        assert found.text == "not known: no measurement was steady, precise and without failed I/Os"
        assert (found.evidence, found.certainty) == ((), None)
    assert findings_of_sweep(replace(result(rising), curves=())) == ()


def test_a_slow_target_is_named_with_its_point() -> None:
    shares = (TargetShare("disk a", 5000, 500.0, 1e6), TargetShare("disk b", 5000, 500.0, 4e6))
    job = JobSpec(targets=(TargetSpec("/a"), TargetSpec("/b")), knobs=Knobs(stripe_width=2))
    plan = make_plan(job, (parse_axis("qd=1..4"),))
    trials = tuple(
        Trial(load, 2 * load, 1000.0, 2e6 * load, duration_s=4, ios=4000, targets=shares) for load in (1, 2, 4)
    )
    swept = SweepResult(plan, (CurveResult(plan.curves[0], trials, answer(trials)),), "complete", (), 9.0)
    found = {each.kind: each for each in findings_of_sweep(swept)}
    assert found[FindingKind.SLOW_TARGET].about == ("disk b",)
    assert found[FindingKind.SLOW_TARGET].where == "qd=1"


MEASURED: dict[str, Any] = {"duration_s": 4.0, "ios": 4000, "engine_share": 0.4, "host_busy_pct": 40.0}


def below(**busy_pct: float) -> dict[str, Any]:
    """Disks under targets of the same name that do a hundred I/Os per second each."""
    rows = [
        {"name": name, "key": name, "targets": [name], "top": True, "lowest": True, "iops": 100.0, "busy_pct": busy}
        | {"in_flight": busy / 100, "await_ms": 10.0, "tiers": {"iops": "kernel", "busy_pct": "kernel"}}
        for name, busy in busy_pct.items()
    ]
    return {"elapsed_s": 4.0, "samples": 5, "tier": "kernel", "disks": rows, "paths": [], "hbas": []}


def test_the_busy_one_of_several_disks_is_named_with_its_peers() -> None:
    devices = below(sda=41.2, sdb=99.0, sdc=40.8, sdd=42.0)
    shares = tuple(TargetShare(name, 1000, 100.0, 1e7) for name in ("sda", "sdb", "sdc", "sdd"))
    found = findings_of_sweep(result(corner(16), **MEASURED, targets=shares, devices=devices))
    (busy,) = (each for each in found if each.kind is FindingKind.BUSY_DEVICE)
    assert busy.text.startswith("sdb is busy 99 % while the other 3 are at 41 %")
    assert (busy.about, busy.where.startswith("qd="), busy.section) == (("sdb",), True, "limit")
    assert FindingKind.UNKNOWN not in kinds(found)


@pytest.mark.parametrize(("busiest", "others"), [(99.0, 80.0), (85.0, 20.0)])
def test_disks_that_are_nearly_as_busy_or_not_busy_are_not_named(busiest: float, others: float) -> None:
    found = findings_of_sweep(result(rising, **MEASURED, devices=below(sda=busiest, sdb=others)))
    assert FindingKind.BUSY_DEVICE not in kinds(found)


def test_a_device_is_full_only_where_more_load_gives_no_more_and_it_is_busy() -> None:
    for busy, device, kind in (
        (99.0, corner(16), FindingKind.DEVICE),
        (60.0, corner(16), FindingKind.UNKNOWN),
        (99.0, rising, FindingKind.OWN_DEPTH),
    ):
        (limit,) = (
            each
            for each in findings_of_sweep(result(device, **MEASURED, devices=below(sda=busy)))
            if each.section == "limit"
        )
        assert limit.kind is kind


def test_storage_without_counters_is_full_where_the_engine_only_waits_for_it() -> None:
    """As the target of a network filesystem, or of one in user space."""

    def limit(**changes: float) -> FindingKind:
        found = findings_of_sweep(result(corner(16), **MEASURED | changes, devices=below()))
        (limit,) = (each for each in found if each.section == "limit")
        return limit.kind

    waiting = {"engine_share": 0.02, "host_busy_pct": 100.0}
    assert limit(**waiting, engine_waiting_share=0.01) is FindingKind.DEVICE
    assert limit(**waiting, engine_waiting_share=0.2) is FindingKind.HOST_CPU
    assert limit(**waiting) is FindingKind.UNKNOWN
    assert limit(engine_share=0.6, engine_waiting_share=0.01) is FindingKind.UNKNOWN


def test_a_busy_disk_is_the_limit_on_a_busy_host_unless_the_engine_waited_for_a_processor() -> None:
    busy_host = MEASURED | {"host_busy_pct": 100.0}
    for waited, kind in ((0.02, FindingKind.DEVICE), (0.3, FindingKind.HOST_CPU)):
        found = findings_of_sweep(result(corner(16), **busy_host, engine_waiting_share=waited, devices=below(sda=99.0)))
        assert [each.kind for each in found if each.section == "limit"] == [kind]


def test_who_took_the_processors_is_kept_with_the_point() -> None:
    devices = below(sda=99.0) | {"cpu_users": [{"name": "g\x1bcc", "pid": 7, "share_pct": 61.0}, "damaged"]}
    found = findings_of_sweep(result(corner(16), **MEASURED, engine_waiting_share=0.3, devices=devices))
    (busy,) = (each for each in found if each.kind is FindingKind.HOST_CPU)
    (user,) = (each for each in busy.evidence if each.name.startswith("CPU of"))
    assert "\x1b" not in user.name
    assert (user.value, user.unit) == (61.0, "% of the host")


def test_an_unknown_limit_says_why() -> None:
    def why(**changes: Any) -> str:
        (found,) = (each for each in findings_of_sweep(result(corner(16), **changes)) if each.section == "limit")
        assert found.kind is FindingKind.UNKNOWN
        return found.text

    assert why() == "not known: too few I/Os, or too short"
    assert why(**MEASURED) == "not known: the devices below the targets were not sampled"
    assert why(**MEASURED, devices=below()) == "not known: no disk below the targets has counters"
    assert why(**MEASURED, devices=below(sda=50.0)).startswith("not known: nothing that is measured is at its limit")


def test_busy_threads_are_given_in_cpus() -> None:
    busy = MEASURED | {"engine_share": 0.98}
    found = {each.kind: each for each in findings_of_sweep(result(corner(16), **busy, devices=below(sda=99.0)))}
    assert "they use 0.98 of the 1 CPU" in found[FindingKind.DRIVER].text
    assert FindingKind.DEVICE not in found
