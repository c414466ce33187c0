"""`lunscope fleet watch` without a screen."""

from __future__ import annotations

import threading

import click

from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.hosts_text import fleet_line_document, fleet_lines
from collectors.fleet.waiting import WaitWords
from collectors.model import Source
from collectors.rates import derive
from engine.strict_json import dump_json
from engine.text import safe_text
from tui.headless.signals import stop_on_signal
from tui.process.standard_streams import say


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
