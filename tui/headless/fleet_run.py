"""`lunscope fleet run`: one load over all hosts, and what it measured."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import click

from collectors.fleet.fleet_load import FleetLoad
from collectors.fleet.fleet_result import FleetResult, fleet_document
from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.host_jobs import HostJob
from collectors.fleet.hosts_text import missing_hosts
from collectors.model import Source, Step
from collectors.rates import derive
from engine.errors import LunscopeError
from engine.job.scenario import Turn
from engine.results.result_text import in_milliseconds, table_header, table_row
from engine.text import safe_text
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals

_SETTLE_S = 60.0
_LOOK_S = 0.05
_END_S = 60.0


@dataclass(frozen=True, slots=True)
class FleetWork:
    """What to drive, and how."""

    jobs: Mapping[str, HostJob]
    turns: Sequence[Turn]
    window_s: float
    destroy_data: bool
    partial: bool
    """Whether to go on without hosts that do not answer."""


def run_fleet(source: Source, fleet: FleetSource, work: FleetWork) -> tuple[FleetResult, int]:
    """Drive a load until it has ended everywhere, or a signal came; returns what was measured and the exit code.

    Raises:
        LunscopeError: a host refuses, or is missing and `partial` was not given; no load has run then.
    """
    last: list[Step] = []
    monitor = Monitor(source, lambda step: last.__setitem__(slice(None), [step]))
    with EndingSignals() as signals:
        try:
            monitor.start()
            await_hosts(fleet, signals, partial=work.partial)
            load = drive(fleet, work, signals, last)
            result = load.result()
            monitor.wait_for_next(2.0)
        finally:
            monitor.close()
        signal = signals.wait(0)
        failed = result.missing or result.split.total.errors
        return result, 128 + signal if signal is not None else int(bool(failed))


def await_hosts(fleet: FleetSource, signals: EndingSignals, *, partial: bool) -> None:
    """Wait until every host has answered or failed.

    Raises:
        LunscopeError: one failed and `partial` is not given, or none is there.
    """
    end_s = time.monotonic() + _SETTLE_S
    controller = fleet.controller
    while not controller.settled() and time.monotonic() < end_s:
        if signals.wait(_LOOK_S) is not None:
            raise LunscopeError("fleet: stopped before the load began")
    gone = missing_hosts(controller.hosts)
    if gone and (not partial or len(gone) == len(controller.hosts)):
        name, why = next(iter(gone.items()))
        more = f" (and {len(gone) - 1} more hosts)" if len(gone) > 1 else ""
        fix = "" if len(gone) == len(controller.hosts) else "; --partial goes on without"
        raise LunscopeError(f"{name}: {why}{more}{fix}")


def drive(fleet: FleetSource, work: FleetWork, signals: EndingSignals, last: list[Step]) -> FleetLoad:
    """Run one load from its preparation to its end on all hosts."""
    load = FleetLoad(fleet.controller, work.jobs, lambda s: signals.wait(s) is not None, work.window_s)
    try:
        load.prepare(destroy_data=work.destroy_data)
        load.start()
    except LunscopeError:
        load.stop()
        raise
    started_s, turns, told_s = time.monotonic(), deque(work.turns), time.monotonic()
    while not load.is_over() and signals.wait(_LOOK_S) is None:
        if turns and time.monotonic() - started_s >= turns[0].at_s:
            load.turn(turns.popleft())
        if time.monotonic() - told_s >= 1.0:
            told_s += 1.0
            _progress(time.monotonic() - started_s, last)
    if signals.wait(0) is not None:
        load.stop()
    load.await_end(_END_S)
    return load


def _progress(elapsed_s: float, last: list[Step]) -> None:
    if last and sys.stderr.isatty():
        total = derive(last[0].previous, last[0].current).tables.get("load_total")
        iops = "" if total is None else f"  {total.value('iops', 0):,.0f} IOPS  lat {total.value('await_ms', 0):.3f} ms"
        sys.stderr.write(f"\r{elapsed_s:5.0f} s{iops:<40}\r")
        sys.stderr.flush()


def print_fleet_result(result: FleetResult, *, as_json: bool) -> None:
    """Print a result."""
    if as_json:
        click.echo(json.dumps(fleet_document(result), allow_nan=False))
        return
    for line in _lines(result):
        click.echo(safe_text(line))


def _lines(result: FleetResult) -> Iterator[str]:
    split = result.split
    yield f"fleet: {len(result.hosts)} hosts, {result.duration_s:.1f} s"
    in_ms = in_milliseconds(split.total)
    yield table_header(in_ms=in_ms)
    for name, part in (("read", split.read), ("write", split.write), ("total", split.total)):
        if part.ios or name == "total":
            yield table_row(part, result.duration_s, name, in_ms=in_ms)
    for host in result.hosts:
        yield table_row(host.split.total, host.duration_s, host.name, in_ms=in_ms)
    if result.start_spread_ns is not None and result.clock_bound_ns is not None:
        bound = result.clock_bound_ns / 1e6
        yield f"started within {result.start_spread_ns / 1e6:.2f} ms of each other (clocks +-{bound:.2f} ms)"
    for number, spread in enumerate(result.turn_spreads_ns, 1):
        yield f"turn {number} within {spread / 1e6:.2f} ms"
    if split.total.errors:
        yield f"{split.total.errors:,} I/Os failed"
    for name, why in result.missing.items():
        yield f"partial: {name} is missing: {why}"
