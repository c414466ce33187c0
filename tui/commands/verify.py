"""`lunscope verify`: what became of the data that a load with --verify wrote."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from datetime import datetime

import click

from engine._native import VerifyPass
from engine.errors import StoppedError
from engine.job.sizes import human_size
from engine.results.outstanding import NAMED_AFTER_S, Outstanding
from engine.text import safe_text
from engine.verify.checking import Checked, check_target, checked_document
from engine.verify.damage import damage_verdict
from engine.verify.text import damage_lines
from tui.unattended.signals import stop_on_signal
from tui.unattended.wait_lines import WaitLines

_INTERRUPTED = 130
_TELL_STEP = 0.01


@click.command(short_help="find torn, stale, misplaced and flipped blocks after a load with --verify")
@click.argument("target", metavar="FILE-OR-DEVICE")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.verify/1).")
@click.option("--no-journal", is_flag=True, help="Judge by what lies on the target only; stale blocks are not told.")
def command(target: str, *, as_json: bool, no_journal: bool) -> int:
    """Read all of a file or device and judge every 512 bytes that a load with --verify wrote there. Nothing is written.

    It works whatever ended the load, kill -9 included, and on any host; the journal that tells old blocks from the last
    ones is on the host that drove the load.

    Exits 0 if all is as it was written, 1 if anything is damaged, cannot be read, or there is nothing to check, 2 for
    what cannot be meant.
    """
    stop, told = threading.Event(), _Progress()
    try:
        with stop_on_signal(stop):
            checked = check_target(target, told, stop, use_journal=not no_journal, begins=told.begin)
    except StoppedError as error:
        told.clear()
        click.echo(f"lunscope: {safe_text(str(error))}", err=True)
        return _INTERRUPTED
    told.clear()
    for line in [json.dumps(checked_document(checked), allow_nan=False)] if as_json else _lines(checked):
        click.echo(safe_text(line))
    return int(bool(checked.damage))


class _Progress:
    """One line on a terminal, rewritten at every percent, and lines of their own for reads that do not come back."""

    def __init__(self) -> None:
        self._told = 0.0
        self._pass: tuple[VerifyPass, str] | None = None
        self._waits = WaitLines(self._say)

    def begin(self, target_pass: VerifyPass, name: str) -> None:
        """Follow another pass over a target."""
        self._pass = target_pass, name

    def __call__(self, share: float) -> None:
        self._waits.show(self._outstanding())
        if sys.stderr.isatty() and share >= self._told + _TELL_STEP:
            self._told = share
            click.echo(f"\rchecked: {100 * share:.0f} %", nl=False, err=True)

    def clear(self) -> None:
        if self._told:
            click.echo(f"\r{'':20}\r", nl=False, err=True)

    def _outstanding(self) -> Iterator[Outstanding]:
        if self._pass is not None:
            ios, since_ns = self._pass[0].outstanding(NAMED_AFTER_S)
            if ios:
                yield Outstanding(self._pass[1], ios, since_ns)

    def _say(self, line: str) -> None:
        self.clear()
        click.echo(f"lunscope: {line}", err=True)


def _lines(checked: Checked) -> Iterator[str]:
    result = checked.result
    if result.latest_run_ns is not None:
        began = datetime.fromtimestamp(result.latest_run_ns / 1e9).astimezone()
        yield f"{result.name}: last verified load began {began:%Y-%m-%d %H:%M:%S}"
    if checked.notice:
        yield f"note: {checked.notice}"
    yield from damage_lines(result.name, result.damage, len(result.damage))
    others = f", {human_size(result.foreign_bytes)} not written by verified loads" if result.foreign_bytes else ""
    elsewhere = f", {human_size(result.elsewhere_bytes)} of loads on what lies here" if result.elsewhere_bytes else ""
    found = damage_verdict(len(result.damage))
    yield f"{result.name}: {human_size(result.good_bytes)} as written{others}{elsewhere}; {found}"
