"""`lunscope fleet watch` and `fleet run` without a screen: one load over all hosts, and what it measured."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Iterator

import click

from collectors.fleet.fleet_drive import FleetDrive
from collectors.fleet.fleet_result import FleetResult, fleet_document
from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.hosts_text import fleet_line_document, fleet_lines
from collectors.fleet.waiting import WaitWords
from collectors.model import Source, Step
from collectors.paths.event_groups import FLEET_HOST
from collectors.rates import derive
from collectors.reports.documents.content import Bullets, Facts, Section
from collectors.reports.documents.run import below_sections, result_section, rows_of
from engine.events import Event, EventKind
from engine.results.result_document import measured_document
from engine.strict_json import dump_json
from engine.text import safe_text
from tui.headless.monitor import Monitor
from tui.headless.shown import print_sections
from tui.headless.signals import EndingSignals, stop_on_signal
from tui.process.standard_streams import say

_MOST_EVENTS = 10_000


def run_fleet(source: Source, drive: FleetDrive) -> tuple[FleetResult, int]:
    """Drive a load until it has ended everywhere, or a signal came; returns what was measured and the exit code.

    Raises:
        LunscopeError: a host refuses, or is missing and `partial` was not given; no load has run then.
    """
    last: list[Step] = []
    events: deque[Event] = deque(maxlen=_MOST_EVENTS)

    def observe(step: Step) -> None:
        last[:] = [step]
        events.extend(step.current.events)
        for event in step.current.events:
            if event.kind is EventKind.MONITOR and FLEET_HOST not in event.data:
                say(event.text)

    monitor = Monitor(source, observe)
    with EndingSignals() as signals:
        try:
            monitor.start()
            drive.run(
                lambda elapsed_s: _progress(elapsed_s, last), lambda seconds: signals.wait(seconds) is not None, say
            )
            result = drive.result()
            assert result is not None
            monitor.wait_for_next(2.0)
        finally:
            monitor.close()
        signal = signals.wait(0)
        result = result.with_events(events)
        return result, 128 + signal if signal is not None else int(result.is_bad)


def _progress(elapsed_s: float, last: list[Step]) -> None:
    if last and sys.stderr.isatty():
        total = derive(last[0].previous, last[0].current).tables.get("load_total")
        iops = "" if total is None else f"  {total.value('iops', 0):,.0f} IOPS  lat {total.value('await_ms', 0):.3f} ms"
        sys.stderr.write(f"\r{elapsed_s:5.0f} s{iops:<40}\r")
        sys.stderr.flush()


def print_fleet_result(result: FleetResult, *, as_json: bool) -> None:
    """Print a result."""
    if as_json:
        click.echo(dump_json(fleet_document(result)))
        return
    print_sections(_sections(result))


def _sections(result: FleetResult) -> Iterator[Section]:
    document = fleet_document(result)
    words = (("hosts", str(len(result.hosts))), ("measured", f"{result.duration_s:.1f} s"))
    yield Section("Fleet", (Facts(words),))
    yield result_section(document)
    hosts = [
        {"name": host.name, "total": measured_document(host.split.total, host.duration_s)} for host in result.hosts
    ]
    yield Section("Hosts", tuple(rows_of("host", hosts)))
    lines = tuple(_lines(result))
    yield Section("Of all hosts", (Bullets(lines),) if lines else ())
    yield from below_sections(document)


def _lines(result: FleetResult) -> Iterator[str]:
    if result.start_spread_ns is not None and result.clock_bound_ns is not None:
        bound = result.clock_bound_ns / 1e6
        yield f"started within {result.start_spread_ns / 1e6:.2f} ms of each other (clocks +-{bound:.2f} ms)"
    for number, spread in enumerate(result.turn_spreads_ns, 1):
        yield f"turn {number} within {spread / 1e6:.2f} ms"
    if result.split.total.errors:
        yield f"{result.split.total.errors:,} I/Os failed"
    for name, why in result.missing.items():
        yield f"partial: {name} is missing: {why}"


def watch_fleet(source: Source, fleet: FleetSource, count: int | None, *, as_json: bool) -> int:
    """Print a number of intervals, from the first in which every host has answered or failed; None: until a signal.

    A host that answers but sends no samples is waited for 5 s, one that does not answer 10 s, and is named on stderr.

    Exits 0, or 1 where no host is connected at the end.
    """
    stop = threading.Event()
    hosts = fleet.controller.hosts
    words = WaitWords(say)
    printed, begun = 0, False
    try:
        with stop_on_signal(stop):
            for step in source.steps(stop):
                waiting = fleet.controller.waiting()
                if not begun:
                    begun = fleet.controller.is_worth_showing()
                    they = "shown" if begun else "ready"
                    words.note(waiting, len(hosts) - len(waiting), they, at_once=begun)
                if not begun or step.previous is None:
                    continue
                frame = derive(step.previous, step.current)
                if as_json:
                    click.echo(dump_json(fleet_line_document(frame, hosts)))
                else:
                    for line in fleet_lines(frame, hosts):
                        click.echo(safe_text(line))
                    click.echo("")
                printed += 1
                if printed == count:
                    break
                if fleet.controller.settled() and not any(host.is_connected for host in hosts.values()):
                    break
        return int(not any(host.is_connected for host in hosts.values()))
    finally:
        source.close()
