"""`lunscope verify`: check the data that a load with --verify wrote."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from datetime import datetime

import click

from engine._native import VerifyPass
from engine.backend.outstanding import NAMED_AFTER_S, Outstanding, Waits, given_up_text
from engine.background_call import BackgroundCall
from engine.errors import StoppedError
from engine.job.sizes import human_size, parse_duration
from engine.job.spec import DEFAULT_GIVE_UP_S
from engine.strict_json import dump_json
from engine.text import safe_text
from engine.verify.checking import Checked, check_target, checked_document
from engine.verify.damage import damage_verdict
from engine.verify.run_result import damage_lines
from tui.headless.leaving import go_on_in_child, leave
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines
from tui.process.standard_streams import say

_TELL_STEP = 0.01
_POLL_S = 0.05
_ENDING_S = 1.0
"""How long a call may take to return after a signal."""
_HASTY = 2
"""Signals after which it stops waiting."""


@click.command(short_help="find torn, stale, misplaced and flipped blocks after a load with --verify")
@click.argument("target", metavar="FILE-OR-DEVICE")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.verify/1).")
@click.option("--no-journal", is_flag=True, help="Use the data on the target only; stale blocks are not detected.")
@click.option("--give-up", metavar="TIME", help="How long to wait for an open or a read that hangs, as 5m. [30s]")
def command(target: str, *, as_json: bool, no_journal: bool, give_up: str | None) -> int:
    """Read a whole file or device and check every 512 bytes that a load with --verify wrote there. Nothing is written.

    It works however the load ended, including kill -9, and on any host; the journal that detects stale blocks is on
    the host that drove the load. An open or a read that hangs is reported after a second or two, and given up after
    --give-up TIME or at a signal.

    Exits 0 if all data are as written, 1 if any are damaged, unreadable or do not return, or if there is nothing to
    check, 2 for usage errors, 130, 143 or 129 if SIGINT, SIGTERM or SIGHUP ended it.
    """
    give_up_s = DEFAULT_GIVE_UP_S if give_up is None else parse_duration(give_up)
    go_on_in_child()
    progress, stop = _Progress(), threading.Event()

    def check() -> Checked:
        return check_target(
            target, progress.note, stop, use_journal=not no_journal, begins=progress.begin, waits=progress.calls
        )

    with EndingSignals() as signals:
        checking = BackgroundCall(check, "lunscope-check")
        given_up = _wait(checking, progress, signals, stop, give_up_s)
        progress.clear()
        signal = signals.wait(0)
    ended = 0 if signal is None else 128 + signal
    if given_up:
        say(f"{given_up_text(given_up)}: not all of it was checked")
        leave(ended or 1)
    try:
        checked = checking.result()
    except StoppedError as error:
        say(str(error))
        return ended
    for line in [dump_json(checked_document(checked))] if as_json else _lines(checked):
        click.echo(safe_text(line))
    return int(bool(checked.damage))


def _wait(
    checking: BackgroundCall[Checked],
    progress: _Progress,
    signals: EndingSignals,
    stop: threading.Event,
    give_up_s: float,
) -> tuple[Outstanding, ...]:
    """Wait for a check and show its progress; returns the calls that were given up, if any."""
    while not checking.done.wait(_POLL_S):
        progress.show()
        if signals.wait(0) is not None:
            stop.set()
            give_up_s = min(give_up_s, _ENDING_S if signals.count < _HASTY else 0.0)
        late = progress.waits(give_up_s)
        if late:
            return late
    return progress.waits(0.0)


class _Progress:
    """One line on a terminal, rewritten at every percent, and further lines for calls that hang."""

    def __init__(self) -> None:
        self.calls = Waits()
        self._share = 0.0
        self._shown = 0.0
        self._pass: tuple[VerifyPass, str] | None = None
        self._lines = WaitLines(self._say)

    def begin(self, target_pass: VerifyPass, name: str) -> None:
        """Begin the progress of another pass over a target; from any thread."""
        self._pass = target_pass, name

    def note(self, share: float) -> None:
        """Set the share done, 0 to 1; from any thread."""
        self._share = share

    def show(self) -> None:
        """Show the share, and hanging calls."""
        self._lines.show(self.waits(NAMED_AFTER_S))
        if sys.stderr.isatty() and self._share >= self._shown + _TELL_STEP:
            self._shown = self._share
            click.echo(f"\rchecked: {100 * self._share:.0f} %", nl=False, err=True)

    def clear(self) -> None:
        """Clear the progress line."""
        if self._shown:
            click.echo(f"\r{'':20}\r", nl=False, err=True)

    def waits(self, at_least_s: float) -> tuple[Outstanding, ...]:
        """Return the calls outstanding for at least this time."""
        found = self.calls.outstanding(at_least_s)
        if self._pass is not None:
            target_pass, name = self._pass
            ios, since_ns = target_pass.outstanding(at_least_s)
            if ios:
                return (*found, Outstanding(name, ios, since_ns))
        return found

    def _say(self, line: str) -> None:
        self.clear()
        say(line)


def _lines(checked: Checked) -> Iterator[str]:
    result = checked.result
    if result.latest_run_ns is not None:
        began = datetime.fromtimestamp(result.latest_run_ns / 1e9).astimezone()
        yield f"{result.name}: last verified load began {began:%Y-%m-%d %H:%M:%S}"
    if checked.notice:
        yield f"note: {checked.notice}"
    yield from damage_lines(result.name, result.damage, len(result.damage))
    others = f", {human_size(result.foreign_bytes)} not written by verified loads" if result.foreign_bytes else ""
    elsewhere = (
        f", {human_size(result.elsewhere_bytes)} of loads on its files or partitions" if result.elsewhere_bytes else ""
    )
    found = damage_verdict(len(result.damage))
    yield f"{result.name}: {human_size(result.good_bytes)} as written{others}{elsewhere}; {found}"
