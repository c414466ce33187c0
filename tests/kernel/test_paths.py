"""Path policies on real devices: shares by their rules, failover without losing an I/O, and turns while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine._native import LoadEngine
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs, PathPolicy
from engine.results.layout_result import PathOutcome
from engine.running.counter_reader import PathHistory
from tests import needs
from tests.kernel.backends import ERRORS, FAILING, IN_FLIGHT, READS, WRITES, eventually, ios, knobs_of, measuring
from tests.kernel.paths import (
    BACKENDS,
    PATH_ERRORS,
    PATH_FAILED,
    SIZE_BYTES,
    MakeLoop,
    break_path,
    detach_path,
    opened_lun,
    repair_path,
    running_lun,
)
from tests.kernel.throttle import slowed, stalled, throttle

pytestmark = needs.loop
RunLun = Callable[..., LoadEngine]


@pytest.fixture
def devices(make_loop: MakeLoop, tmp_path: Path) -> list[str]:
    return [make_loop(SIZE_BYTES, folder=tmp_path) for _ in range(3)]


def _reads(engine: LoadEngine) -> NDArray[np.float64]:
    return engine.path_counters()[:, READS].astype(np.float64)


def _knobs(policy: PathPolicy, depth: int = 4, **others: Any) -> Knobs:
    return knobs_of(depth, policy=policy, **others)


def _shares(engine: LoadEngine, enough: int = 2000) -> list[float]:
    """Wait for so many I/Os of the open epoch, and split them by path."""
    eventually(lambda: measuring(engine) and int(engine.epochs()[-1].counts[0, 0, 0]) >= enough, "enough I/Os")
    counts = engine.epochs()[-1].path_counts[:, 0, 0].astype(np.float64)
    return [float(share) for share in counts / counts.sum()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_policy_spreads_ios_by_its_rule(backend: str, devices: list[str]) -> None:
    weights, preferred = (1, 3, 0), 2
    with (
        opened_lun(devices, weights=weights, preferred=preferred, cells=(0, None, 0)) as lun,
        running_lun(backend, lun, _knobs(PathPolicy.ROUND_ROBIN)) as engine,
    ):
        assert _shares(engine) == pytest.approx([1 / 3] * 3, abs=0.01)
        engine.apply(_knobs(PathPolicy.WEIGHTED_ROUND_ROBIN))
        assert _shares(engine) == pytest.approx([0.25, 0.75, 0], abs=0.01)
        engine.apply(_knobs(PathPolicy.PREFERRED_PATH))
        assert _shares(engine) == [0, 0, 1]
        engine.apply(_knobs(PathPolicy.PATH_LOCKDOWN))
        assert sorted(_shares(engine)) == [0, 0, 1]
        engine.apply(_knobs(PathPolicy.CELL_LOCAL_ROUND_ROBIN))
        assert _shares(engine) == pytest.approx([0.5, 0, 0.5], abs=0.01)
        engine.apply(_knobs(PathPolicy.SERVICE_TIME))
        # From here on a path whose I/Os hang gets no more, and on a busy host they hang now and then.
        eventually(lambda: _shares(engine)[1] > 0.5, "the path of weight 3 to carry most")
        assert _shares(engine)[2] == 0
        engine.apply(_knobs(PathPolicy.LEAST_COMMAND_LOAD))
        eventually(lambda: min(_shares(engine)) > 0, "I/Os on every path")
        engine.apply(_knobs(PathPolicy.HISTORICAL_SERVICE_TIME))
        eventually(lambda: min(_shares(engine)) > 0, "I/Os on every path")
        assert engine.epochs()[-1].policy_ns is not None


@pytest.mark.parametrize("policy", list(PathPolicy))
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_failed_path_is_left_without_an_error_and_used_again(
    backend: str, policy: PathPolicy, devices: list[str]
) -> None:
    with opened_lun(devices[:2]) as lun, running_lun(backend, lun, _knobs(policy)) as engine:
        _shares(engine, 200)
        # The first one is the path of those policies that use but one.
        break_path(devices[0])
        eventually(lambda: int(engine.path_counters()[0, PATH_FAILED]) == 1, "the path to fail")
        before = _reads(engine)
        eventually(lambda: _reads(engine)[1] > before[1] + 200, "I/Os on the other")
        # What was under way when it broke may still come back well.
        assert _reads(engine)[0] <= before[0] + 4
        # The path is left before the I/O that found it broken is counted.
        eventually(lambda: int(engine.path_counters()[0, PATH_ERRORS]) >= 1, "the error to be counted")
        assert int(engine.path_counters()[0, PATH_ERRORS]) <= 4
        assert int(engine.counters()[0, ERRORS]) == 0
        assert int(engine.counters()[0, FAILING]) == 0
        repair_path(devices[0])
        eventually(lambda: int(engine.path_counters()[0, PATH_FAILED]) == 0, "the path to answer")
        if policy is not PathPolicy.PATH_LOCKDOWN:
            eventually(lambda: _reads(engine)[0] > before[0] + 50, "I/Os on it")
    assert engine.errors() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_path_whose_disk_is_gone_costs_no_write(backend: str, devices: list[str]) -> None:
    knobs = _knobs(PathPolicy.ROUND_ROBIN, 8, read_pct=50.0)
    with opened_lun(devices[:2], writable=True) as lun, running_lun(backend, lun, knobs) as engine:
        eventually(lambda: int(engine.counters()[0, WRITES]) > 200, "writes")
        detach_path(devices[1])
        eventually(lambda: int(engine.path_counters()[1, PATH_FAILED]) == 1, "the path to fail")
        done = int(engine.counters()[0, WRITES])
        eventually(lambda: int(engine.counters()[0, WRITES]) > done + 200, "writes on the other")
        assert int(engine.counters()[0, ERRORS]) == 0
        repair_path(devices[1])
        eventually(lambda: int(engine.path_counters()[1, PATH_FAILED]) == 0, "the path to answer")


@pytest.mark.parametrize("backend", BACKENDS)
def test_fsyncs_go_over_paths_but_are_no_writes_of_them(backend: str, devices: list[str]) -> None:
    knobs = _knobs(PathPolicy.ROUND_ROBIN, read_pct=0.0, fsync_every=3)
    # That the writes of the paths are those of the target is seen at the end, as in every test here.
    with opened_lun(devices[:2], writable=True) as lun, running_lun(backend, lun, knobs) as engine:
        eventually(lambda: measuring(engine) and int(engine.epochs()[0].fsyncs[0, 0]) > 50, "fsyncs")


@pytest.mark.parametrize("policy", list(PathPolicy))
@pytest.mark.parametrize("backend", BACKENDS)
def test_without_a_live_path_the_target_fails_until_one_answers(
    backend: str, policy: PathPolicy, devices: list[str]
) -> None:
    with opened_lun(devices[:2]) as lun, running_lun(backend, lun, _knobs(policy)) as engine:
        _shares(engine, 200)
        for device in devices[:2]:
            break_path(device)
        eventually(lambda: int(engine.counters()[0, FAILING]) == 1, "the target to fail")
        eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 0, "nothing outstanding")
        done = ios(engine)
        assert engine.apply(_knobs(policy, 8)) == 1
        repair_path(devices[1])
        eventually(lambda: ios(engine) > done + 200, "I/Os again")
        assert int(engine.counters()[0, FAILING]) == 0
        assert engine.path_counters()[:, PATH_FAILED].tolist() == [1, 0]
    # What was outstanding when the last path failed; the probes are no I/Os of the load.
    assert int(engine.counters()[0, ERRORS]) <= 8


@throttle
@pytest.mark.parametrize("backend", BACKENDS)
def test_policies_that_look_at_the_load_spare_a_slow_path(backend: str, devices: list[str]) -> None:
    slow_iops = 300
    with (
        slowed(devices[0], slow_iops),
        opened_lun(devices[:2]) as lun,
        running_lun(backend, lun, _knobs(PathPolicy.ROUND_ROBIN, 8)) as engine,
    ):
        assert _shares(engine, 300)[0] == pytest.approx(0.5, abs=0.03)
        for policy in (
            PathPolicy.LEAST_COMMAND_LOAD,
            PathPolicy.SERVICE_TIME,
            PathPolicy.HISTORICAL_SERVICE_TIME,
        ):
            engine.apply(_knobs(policy, 8))
            # Far more I/Os than the slow path could have had as its half.
            assert _shares(engine, 5000)[0] < 0.25, policy


@throttle
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stalled_path_holds_up_no_turn(backend: str, devices: list[str]) -> None:
    with opened_lun(devices[:2]) as lun:
        knobs = _knobs(PathPolicy.PREFERRED_PATH, 8, threads=2)
        engine = LoadEngine([lun], knobs, LoadSettings(backend="uring" if backend == "uring" else "threads"))
        with stalled(devices[0]):
            engine.start()
            eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) == 8, "8 outstanding")
            turned = time.monotonic()
            engine.apply(_knobs(PathPolicy.LEAST_COMMAND_LOAD, 16, threads=2))
            done = _reads(engine)[1]
            eventually(lambda: _reads(engine)[1] > done, "an I/O on the other path")
            assert time.monotonic() - turned < 1
            engine.apply(_knobs(PathPolicy.LEAST_COMMAND_LOAD, 2, threads=2))
        eventually(lambda: int(engine.counters()[0, IN_FLIGHT]) <= 2, "the surplus to drain")
        assert engine.stop()
        assert engine.counters()[0, READS] == engine.path_counters()[:, READS].sum()


def test_a_path_of_weight_0_only_is_refused_where_it_would_never_be_used(devices: list[str]) -> None:
    with opened_lun(devices[:2], weights=(0, 0)) as lun:
        with pytest.raises(ValueError, match="weight 0"):
            LoadEngine([lun], _knobs(PathPolicy.WEIGHTED_ROUND_ROBIN), LoadSettings(backend="threads"))
        engine = LoadEngine([lun], _knobs(PathPolicy.SERVICE_TIME), LoadSettings(backend="threads"))
        engine.start()
        eventually(lambda: ios(engine) > 100, "I/Os")
        with pytest.raises(ValueError, match="weight 0"):
            engine.apply(_knobs(PathPolicy.WEIGHTED_ROUND_ROBIN))
        assert engine.stop()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_history_says_when_a_path_failed_and_when_it_answered_again(backend: str, devices: list[str]) -> None:
    history = PathHistory()
    with opened_lun(devices[:2]) as lun, running_lun(backend, lun, _knobs(PathPolicy.ROUND_ROBIN)) as engine:
        started_s = time.monotonic()

        def outcomes() -> tuple[PathOutcome, ...]:
            history.observe(engine.path_counters(), ("LUN",), devices[:2], time.monotonic() - started_s)
            return history.outcomes

        _shares(engine, 200)
        assert outcomes() == ()
        break_path(devices[1])
        eventually(lambda: len(outcomes()) == 1, "the path to fail")
        assert outcomes()[0].returned_s is None
        repair_path(devices[1])
        eventually(lambda: outcomes()[0].returned_s is not None, "the path to answer")
        (one,) = outcomes()
        assert (one.target, one.path) == ("LUN", devices[1])
        assert 0 < one.failed_s < (one.returned_s or 0)
        assert one.ios_retried == int(engine.path_counters()[1, PATH_ERRORS]) >= 1
    assert engine.errors() == []
