"""A drill on a fake host: figures of its phases, pauses, and paths that come back however it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from engine.drill.measure import Counters, DrillPhase, PhaseMeter
from engine.drill.paths import DrilledLun, HostPaths
from engine.drill.run import DrillResult, DrillRun, only_drill
from engine.errors import LunscopeError, RefusedError, StoppedError
from engine.hostfs.kernel_files import Roots
from engine.tune.journal import Journal
from engine.tune.record import State
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import present, scsi

PATIENCE_S = 30.0
MS = 1_000_000


def fed(readings: Sequence[tuple[int, int, int]], first: int = 0) -> PhaseMeter:
    """A meter that was given readings of (ms, I/Os, in flight)."""
    meter = PhaseMeter(Counters(first * MS, 0, 0, 4))
    for at_ms, ios, in_flight in readings:
        meter.add(Counters(at_ms * MS, ios, ios * 4096, in_flight))
    return meter


def pause_ms(meter: PhaseMeter) -> float | None:
    return None if meter.figures is None or meter.figures.pause_s is None else meter.figures.pause_s * 1e3


def test_a_pause_is_never_shorter_than_the_true_one() -> None:
    steady = [(at, at, 4) for at in range(10, 60, 10)]
    assert pause_ms(fed(steady)) == 20
    # The last completion before the pause was after 50 ms, the next one before 300 ms.
    paused = [*steady, *((at, 50, 4) for at in range(60, 300, 10)), (300, 60, 4), (310, 70, 4)]
    assert pause_ms(fed(paused)) == 260
    # It goes on where nothing has completed yet.
    assert pause_ms(fed([*steady, (400, 50, 4)])) == 360


def test_nobody_waits_while_nothing_is_outstanding() -> None:
    idle = [(10, 10, 0), *((at, 10, 0) for at in range(20, 900, 10)), (900, 11, 1), (910, 12, 1)]
    assert pause_ms(fed(idle)) == 20


def test_a_pause_goes_on_in_the_next_phase_and_rates_are_of_the_phase() -> None:
    before = fed([(10, 10, 4), (20, 20, 4)])
    after = before.next_phase()
    after.add(Counters(100 * MS, 20, 20 * 4096, 4))
    after.add(Counters(120 * MS, 40, 40 * 4096, 4))
    assert pause_ms(after) == 110
    assert after.figures is not None
    assert after.figures.ios == 20
    assert after.figures.iops == pytest.approx(200)
    assert after.figures.bytes_per_s == pytest.approx(200 * 4096)
    assert before.next_phase().figures is None


def test_without_a_completion_there_is_no_length_of_a_pause() -> None:
    assert pause_ms(fed([(10, 0, 4), (20, 0, 4)])) is None


class Host4:
    """One LUN with four paths, whose counters run, and a drill of it."""

    def __init__(self, folder: Path) -> None:
        self.kernel = FakeKernel(folder / "host")
        for host, name in enumerate(("sda", "sdb", "sdc", "sdd")):
            self.kernel.add(scsi(name, host, device__state="running\n", device__ioerr_cnt="0x2\n"))
        self.kernel.write_proc("self/mountinfo", "1 0 0:1 / / rw - tmpfs none rw\n")
        self.tree = KernelTree(self.kernel.sysfs)
        self.journal = Journal(folder / "state")
        self.said: list[str] = []
        self.count = 0

    def look(self) -> HostPaths:
        return HostPaths(Host(self.tree), Roots(self.kernel.procfs, self.kernel.sysfs), hidden=())

    def state(self, name: str = "sda") -> str:
        return present(self.kernel, "device/state", name)[0]

    def wait(self, timeout_s: float) -> str:
        """I/Os go on over the paths that are running."""
        time.sleep(timeout_s)
        self.count += 10
        for name in self.kernel.disks:
            if self.state(name) == "running":
                self.kernel.count(name, (self.count, 0, self.count * 8, 0, 0, 0, 0, 0, 2))
        return ""

    def run(
        self, wait: Callable[[float], str], *scopes: str, offline_s: float = 60.0, around_s: float = 0.05
    ) -> DrillResult:
        drill = DrillRun(self.tree, self.look, self.journal, wait, self.said.append, require=lambda _luns: None)
        return drill.run(scopes or ("sda",), offline_s, around_s)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host4]:
    host = Host4(tmp_path)
    yield host
    host.tree.close()


def test_a_drill_measures_its_phases_and_ends_with_its_time(host: Host4) -> None:
    def wait(timeout_s: float) -> str:
        if host.state() == "offline":
            host.kernel.set("sda", "device/ioerr_cnt", "0x7\n")
        return host.wait(timeout_s)

    result = host.run(wait, offline_s=0.3)
    assert (result.ending, result.lost, result.problems) == ("", "", ())
    (lun,) = result.drill.luns
    for phase in DrillPhase:
        figures = result.of(lun, phase)
        assert figures is not None
        assert figures.ios > 0
    offline = result.of(lun, DrillPhase.OFFLINE)
    assert offline is not None
    assert offline.duration_s >= 0.29
    assert result.path_errors == {"sda": 5}
    assert host.state() == "running"
    assert host.said[0].startswith("path.scsi running -> offline on sda for 0.3s")
    assert host.said[-1] == "the paths are back"


def test_a_signal_or_the_loss_of_the_other_paths_brings_them_back_at_once(host: Host4) -> None:
    def wait(timeout_s: float) -> str:
        host.wait(timeout_s)
        return "ended by SIGTERM" if host.state() == "offline" else ""

    result = host.run(wait)
    assert (result.ending, host.state()) == ("ended by SIGTERM", "running")

    def lose(timeout_s: float) -> str:
        if host.state() == "offline":
            for name in ("sdb", "sdc", "sdd"):
                host.kernel.set(name, "device/state", "transport-offline\n")
        return host.wait(timeout_s)

    result = host.run(lose)
    assert result.lost == result.drill.luns[0].name
    assert result.ending.endswith("lost the paths that it was to keep")
    assert host.state() == "running"


def test_nothing_goes_offline_if_it_ends_before_or_the_other_paths_go_meanwhile(host: Host4) -> None:
    with pytest.raises(StoppedError, match="ended by SIGINT: no path was taken offline"):
        host.run(lambda _timeout_s: "ended by SIGINT")

    def lose(timeout_s: float) -> str:
        for name in ("sdb", "sdc", "sdd"):
            host.kernel.set(name, "device/state", "offline\n")
        return host.wait(timeout_s)

    with pytest.raises(RefusedError, match="sda is the last usable path"):
        host.run(lose)
    assert host.state() == "running"
    assert not host.journal.records()


def test_paths_that_do_not_answer_are_refused_before_anything_is_written(host: Host4) -> None:
    def silent(luns: Sequence[DrilledLun]) -> None:
        raise RefusedError(f"{luns[0].name}: no answer")

    with pytest.raises(RefusedError, match="no answer"):
        DrillRun(host.tree, host.look, host.journal, host.wait, host.said.append, require=silent).run(
            ("sda",), 60.0, 0.0
        )
    assert host.state() == "running"


def test_one_drill_at_a_time(host: Host4) -> None:
    with only_drill(host.journal), pytest.raises(LunscopeError, match="another drill takes paths offline now"):
        host.run(host.wait)
    assert host.state() == "running"


def test_kill_9_of_a_drill_brings_its_paths_back(host: Host4) -> None:
    child = os.fork()
    if not child:
        try:
            host.run(host.wait, "sda", "sdb", "sdc")
        finally:
            os._exit(1)
    _wait_for(lambda: host.state("sdc") == "offline")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _wait_for(lambda: [host.state(name) for name in ("sda", "sdb", "sdc")] == ["running"] * 3)
    _wait_for(lambda: host.journal.records()[-1].state is State.REVERTED)


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline_s, pause = time.monotonic() + PATIENCE_S, threading.Event()
    while not condition():
        assert time.monotonic() < deadline_s, "it did not happen"
        pause.wait(0.01)
