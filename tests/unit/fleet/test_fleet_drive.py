"""Knobs of a load over hosts, turned while it runs: on all of them at one time, or on none."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collectors.fleet.fleet_drive import FleetDrive
from collectors.fleet.frames import whole
from engine.errors import LunscopeError, RefusedError, UsageError
from engine.job.scenario import Turn
from engine.job.spec import Knobs
from engine.replacing import replace
from engine.running.status import LoadState
from tests.unit.fleet.answering_hosts import answering_fleet, drive_of
from tests.unit.fleet.made_hosts import clock

PATIENCE_S = 60.0
READS = Knobs(queue_depth=4, read_pct=100.0)


def wait_for(condition: object) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@contextmanager
def running(drive: FleetDrive) -> Iterator[None]:
    thread = threading.Thread(target=drive.run, daemon=True)
    thread.start()
    wait_for(lambda: drive.status.state is LoadState.RUNNING)
    try:
        yield
    finally:
        drive.stop()
        thread.join(PATIENCE_S)


def turned(drive: FleetDrive, knobs: Knobs) -> str:
    """What became of a turn."""
    said: list[str] = []
    drive.request_turn(knobs, said.append)
    wait_for(lambda: said)
    return said[0]


def test_a_turn_reaches_all_hosts_and_the_result_says_how_far_apart() -> None:
    fleet, links = answering_fleet("h1", "h2", "h3")
    drive = drive_of(fleet, READS)
    with running(drive):
        assert turned(drive, replace(READS, queue_depth=8)) == ""
        assert {host: [each.queue_depth for each in knobs] for host, knobs in links.knobs.items()} == {
            "h1": [8],
            "h2": [8],
            "h3": [8],
        }
        assert drive.knobs.queue_depth == 8
        assert not drive.is_turning
        assert re.match(r"synchronous within 1000 ms: clocks \+-[\d.]+ ms, the last turn within ", drive.clock_text)
    result = drive.result()
    assert result is not None
    assert len(result.turn_spreads_ns) == 1
    assert drive.status.state is LoadState.FINISHED


def test_a_turn_that_one_host_refuses_is_taken_back_on_the_others() -> None:
    fleet, links = answering_fleet("h1", "h2")
    links.refuses["h2"] = "the queue is too deep"
    drive = drive_of(fleet, READS)
    with running(drive):
        assert turned(drive, replace(READS, queue_depth=16)) == "h2: the queue is too deep"
        assert [each.queue_depth for each in links.knobs["h1"]] == [16, 4]
        assert drive.knobs == READS
    result = drive.result()
    assert result is not None
    assert result.turn_spreads_ns == ()


def test_a_turn_is_refused_where_the_clocks_are_worse_than_the_window() -> None:
    fleet, links = answering_fleet("h1", "h2")
    drive = drive_of(fleet, READS)
    with running(drive):
        for _ in range(16):
            clock(fleet, "h2", trip_ns=30_000_000_000)
        said = turned(drive, replace(READS, queue_depth=8))
        assert re.match(
            r"fleet: not synchronous: the clock of h2 is known to \+-15\d+\.\d ms only, the window is 1000 ms", said
        )
        assert said == f"fleet: {drive.clock_text}"
        assert not links.knobs
        assert drive.knobs == READS


def test_what_no_host_may_write_or_drive_is_refused_before_anything_is_sent() -> None:
    fleet, links = answering_fleet("h1", "h2")
    drive = drive_of(fleet, READS, paths=("/dev/sdz",))
    drive._jobs["h2"] = replace(drive._jobs["h2"], allow_write=())
    with running(drive):
        with pytest.raises(RefusedError, match=r"h2:/dev/sdz: writing is not allowed"):
            drive.request_turn(replace(READS, read_pct=50.0), print)
        with pytest.raises(UsageError):
            drive.request_turn(replace(READS, queue_depth=0), print)
        with pytest.raises(UsageError, match="runs already"):
            drive.run()
        assert not links.knobs


def test_knobs_turned_before_the_start_are_those_of_the_start_and_a_refusal_ends_it() -> None:
    fleet, links = answering_fleet("h1")
    drive = drive_of(fleet, READS)
    assert turned(drive, replace(READS, queue_depth=8)) == ""
    with running(drive):
        assert drive.job.knobs.queue_depth == 8
    assert not links.knobs
    fleet.hosts["h1"].reason = "gone"
    fleet._fail(fleet.hosts["h1"], "gone")
    with pytest.raises(LunscopeError, match="h1: gone"):
        drive.run()
    assert drive.status.state is LoadState.FAILED


def test_what_a_turn_takes_puts_off_the_later_ones_and_the_end() -> None:
    fleet, links = answering_fleet("h1", "h2")
    links.takes_ns = 700_000_000
    turns = [Turn(at_s, (("queue_depth", depth),)) for at_s, depth in ((0.1, 5), (0.2, 6))]
    drive = drive_of(fleet, READS, scenario=(0.25, turns))
    with running(drive):
        wait_for(lambda: [each for each in links.asked if each["type"] == "end"][1:])
        links.end("h1")
        links.end("h2")
    h1 = {kind: [each for each in links.asked if each["type"] == kind][::2] for kind in ("start", "turn", "end")}
    (start,), (first, second), (end,) = h1.values()
    assert start["open_ended"] is True
    assert whole(first, "at_ns") - whole(start, "at_ns") >= 100_000_000
    assert whole(second, "at_ns") - whole(first, "at_ns") >= 100_000_000 + links.takes_ns
    assert whole(end, "end_ns") - whole(second, "at_ns") == 50_000_000 + links.takes_ns


def test_turns_that_a_load_does_not_live_to_see_are_said() -> None:
    fleet, links = answering_fleet("h1")
    drive = drive_of(fleet, READS, scenario=(None, [Turn(100.0, (("queue_depth", 5),))]))
    said: list[str] = []
    thread = threading.Thread(target=drive.run, kwargs={"say": said.append}, daemon=True)
    thread.start()
    wait_for(lambda: drive.status.state is LoadState.RUNNING)
    links.end("h1")
    thread.join(PATIENCE_S)
    (line,) = said
    assert re.fullmatch(r"the load ended after \S+, before 1 of its turns: the first was due after 100s", line)
