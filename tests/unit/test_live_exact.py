"""When a live source attaches for exact time, what its samples say of it, and what happens where that cannot be."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.exact import live_tier
from collectors.exact.live_tier import LiveTier
from collectors.exact.tracer import Tracer
from collectors.model import Rows, Sample, Tier, Topology
from collectors.sources.live import LiveSource
from engine.errors import LunscopeError
from engine.replacing import replace
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.kernel.backends import eventually
from tests.unit.hand_tracer import HandTracer
from tests.unit.test_live import HandClock
from tests.unit.test_looking import busy_host

PATIENCE_S = 10.0


class Opener:
    """Hands out one tracer, counts, and may hold back or refuse."""

    def __init__(self, refusal: str = "") -> None:
        self.tracer = HandTracer()
        self.refusal = refusal
        self.opened = 0
        self.allowed = threading.Event()
        self.allowed.set()

    def __call__(self, _procfs: str, _sysfs: str) -> Tracer:
        self.opened += 1
        assert self.allowed.wait(PATIENCE_S)
        if self.refusal:
            raise LunscopeError(self.refusal)
        return self.tracer


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("sda", diskseq=3))
    return kernel


def live(kernel: FakeKernel, opener: Opener, tier: str = "auto", patience_s: float = PATIENCE_S) -> LiveSource:
    roots = kernel.procfs, kernel.sysfs
    return LiveSource(1.0, *roots, tier, clock=HandClock(), patience_s=patience_s, open_tracer=opener)


def take(source: LiveSource, count: int) -> list[Sample]:
    return [step.current for step in itertools.islice(source.steps(StopFlag()), count)]


def test_who_may_wait_has_exact_counters_from_the_first_sample(kernel: FakeKernel) -> None:
    opener = Opener()
    source = live(kernel, opener)
    (sample,) = take(source, 1)
    source.close()
    assert set(sample.tables) >= {"trace", "trace_group", "tracer", "slow_io"}
    assert sample.topology.host.tier is Tier.EXACT
    assert opener.tracer.closed == 1


def test_a_screen_has_its_first_sample_before_anything_is_attached(kernel: FakeKernel) -> None:
    opener = Opener()
    opener.allowed.clear()
    source = live(kernel, opener, patience_s=0.0)
    steps = source.steps(StopFlag())
    first = next(steps).current
    assert opener.opened == 0
    assert first.topology.host.tier is Tier.SAMPLED
    second = next(steps).current
    assert "trace" not in second.tables
    opener.allowed.set()
    assert source._exact._supervisor.wait(PATIENCE_S)
    third = next(steps).current
    source.close()
    assert third.topology.host.tier is Tier.EXACT
    assert [event.text.partition(",")[0] for event in third.events] == ["exact time: block tracepoints are watched"]


def test_where_it_cannot_be_the_next_tier_serves_and_the_reason_is_reported(kernel: FakeKernel) -> None:
    source = live(kernel, Opener("no right to trace: run as root"))
    (sample,) = take(source, 1)
    source.close()
    assert sample.topology.host.tier is Tier.SAMPLED
    assert "no exact time: no right to trace: run as root" in sample.topology.host.notices
    assert [event.text for event in sample.events] == ["no exact time: no right to trace: run as root"]


@pytest.mark.parametrize("tier", ["sampled", "kernel"])
def test_a_lesser_tier_attaches_nothing(kernel: FakeKernel, tier: str) -> None:
    opener = Opener()
    source = live(kernel, opener, tier)
    samples = take(source, 2)
    source.close()
    assert opener.opened == 0
    assert not set(samples[1].tables) & {"trace", "tracer"}
    assert samples[1].topology.host.tier is Tier[tier.upper()]


def test_who_insists_on_exact_time_gets_it_or_the_reason(kernel: FakeKernel) -> None:
    with pytest.raises(LunscopeError, match=r"tier exact: .*vmlinux is missing: the exact tier needs"):
        live(kernel, Opener(), "exact")


def test_the_samplers_rest_while_exact_counters_come(kernel: FakeKernel) -> None:
    opener = Opener()
    source = live(kernel, opener)
    steps = source.steps(StopFlag())
    next(steps)
    assert source._watch is not None
    assert source._watch.paused
    opener.tracer.trouble = "gone"
    opener.refusal = "gone for good"
    assert next(steps).current.topology.host.tier is Tier.SAMPLED
    assert not source._watch.paused
    source.close()


def test_the_operator_has_waits_for_tags_watched(kernel: FakeKernel) -> None:
    opener = Opener()
    source = live(kernel, opener)
    source.watch_tag_wait(True)
    take(source, 1)
    source.close()
    assert opener.tracer.tag_wait == [True]


def test_who_wants_a_sample_at_once_has_it_before_anything_is_waited_for(kernel: FakeKernel) -> None:
    opener = Opener()
    opener.allowed.clear()
    roots = kernel.procfs, kernel.sysfs
    source = LiveSource(1.0, *roots, clock=HandClock(), patience_s=PATIENCE_S, sample_at_once=True, open_tracer=opener)
    steps = source.steps(StopFlag())
    first = next(steps)
    assert opener.opened == 0
    assert first.previous is None
    assert len(first.current.tables["disk"].rows) == 1
    opener.allowed.set()
    second, third = next(steps), next(steps)
    assert second.previous is None
    assert second.current.topology.host.tier is Tier.EXACT
    assert third.previous is second.current
    source.close()


def test_a_required_tier_that_comes_late_is_waited_for_and_this_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_tier, "SAID_AFTER_S", 0.05)
    opener, said = Opener(), list[str]()
    opener.allowed.clear()

    def say(text: str) -> None:
        said.append(text)
        opener.allowed.set()

    tier = LiveTier("exact", 0.01, lambda: opener("", ""), lambda: Rows((), ()), Topology, say=say)
    try:
        tier.before_first_sample(threading.Event())
        assert opener.opened == 1
    finally:
        tier.close()
    assert said == ["attaching for exact time takes longer than 0.05 s on this host; waiting"]


def test_a_required_tier_that_comes_too_late_ends_with_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_tier, "SAID_AFTER_S", 0.02)
    monkeypatch.setattr(live_tier, "LONGEST_ATTACH_S", 0.05)
    opener = Opener()
    opener.allowed.clear()
    tier = LiveTier("exact", 3.0, lambda: opener("", ""), lambda: Rows((), ()), Topology)
    try:
        with pytest.raises(LunscopeError, match=r"not attached in 0\.05 s .*--tier auto"):
            tier.before_first_sample(threading.Event())
    finally:
        opener.allowed.set()
        tier.close()


def test_who_stops_does_not_wait_for_a_required_tier() -> None:
    opener, stop = Opener(), threading.Event()
    opener.allowed.clear()
    stop.set()
    tier = LiveTier("exact", 3.0, lambda: opener("", ""), lambda: Rows((), ()), Topology)
    try:
        tier.before_first_sample(stop)
    finally:
        opener.allowed.set()
        tier.close()


def test_exact_time_that_costs_too_much_is_stopped_and_begins_again() -> None:
    opener = Opener()
    tier = LiveTier("auto", PATIENCE_S, lambda: opener("", ""), lambda: Rows((), ()), Topology, most_cost_pct=5.0)
    try:
        tier.before_first_sample(threading.Event())
        load = busy_host(share_pct=10.0)
        while not opener.tracer.closed:
            tier.govern(next(load))
        topology = tier.with_tier(Topology(), Tier.SAMPLED)
        assert topology.host.tier is Tier.SAMPLED
        assert any("it was stopped, as its programs took 30.0 % of a CPU" in notice for notice in topology.host.notices)
        idle = next(load)
        for at in range(1, 100):
            later = idle.monotonic_ns + at * 1_000_000_000
            tier.govern(replace(idle, monotonic_ns=later))
        eventually(lambda: opener.opened == 2, "exact time begins again")
    finally:
        tier.close()


def test_exact_time_that_was_asked_for_goes_on_whatever_it_costs() -> None:
    opener = Opener()
    tier = LiveTier("exact", PATIENCE_S, lambda: opener("", ""), lambda: Rows((), ()), Topology, most_cost_pct=5.0)
    try:
        tier.before_first_sample(threading.Event())
        for sample in itertools.islice(busy_host(share_pct=10.0), 30):
            tier.govern(sample)
        assert not opener.tracer.closed
        told = [event.text for event in tier.collector.read().events if "asks for it" in event.text]
        assert len(told) == 1
    finally:
        tier.close()
