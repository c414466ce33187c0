"""A change of tunables in force while a command runs, or for a time."""

from __future__ import annotations

import math
import signal
import subprocess
import time

from engine.errors import LunscopeError
from engine.job.sizes import format_duration
from engine.tune.change import TunableChange, make_change
from engine.tune.follow import LOOK_EVERY_S, FollowedScope
from engine.tune.planned_writes import TunePlan
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable
from tui.headless.signals import EndingSignals
from tui.process.standard_streams import say

_POLL_S = 0.2


def make_and_end(
    tree: KernelTree,
    plan: TunePlan,
    given: dict[Tunable, str],
    arguments: list[str],
    *,
    keep: bool,
    duration_s: float | None,
    nearest: bool,
) -> int:
    """Make a change and keep it in force as long as asked: while a command runs, for a time, or until it is undone.

    Returns the exit code: of the command, 128 + the number of a signal that ended the time, 1 if restoring failed.
    """
    if not plan.writes:
        say(f"nothing to change: {plan.unchanged:,} values are so already")
        return _run(arguments) if arguments else 0
    with EndingSignals() as signals:
        change = make_change(tree, plan, given, keep=keep, duration_s=duration_s, nearest=nearest)
        for line in change.record.summary:
            say(line)
        if keep:
            say(f"change {change.record.number} is kept: `lunscope tune undo` restores it")
            return 0
        status = _run(arguments, signals, change) if arguments else _hold(change, signals, duration_s or 0)
        return _end(change) or status


def follow_and_end(followed: FollowedScope, arguments: list[str], duration_s: float | None) -> int:
    """Keep values in force on a scope whose devices come and go, while a command runs, for a time, or until a signal.

    Returns the exit code: of the command, 128 + the number of a signal that ended it, 1 if restoring failed.
    """
    with EndingSignals() as signals:
        try:
            for line in followed.look():
                say(line)
            if not arguments:
                say(f"followed {'until Ctrl-C' if duration_s is None else f'for {format_duration(duration_s)}'}")
            until_s = math.inf if duration_s is None else time.monotonic() + duration_s
            status = _follow(followed, signals, _started(arguments), until_s)
        finally:
            problems = [line for record in followed.end() for line in record.problems]
            for line in problems:
                say(line)
        return 1 if problems else status


def _follow(
    followed: FollowedScope, signals: EndingSignals, process: subprocess.Popen[bytes] | None, until_s: float
) -> int:
    look_s, said = time.monotonic() + LOOK_EVERY_S, ""
    while time.monotonic() < until_s:
        ending = signals.wait(_POLL_S)
        if process is not None and (code := process.poll()) is not None:
            return code if code >= 0 else 128 - code
        if ending is not None and process is None:
            return 128 + ending
        if ending is not None and process is not None:
            if ending is not signal.SIGINT:
                process.send_signal(ending)
            code = process.wait()
            return code if code >= 0 else 128 - code
        if time.monotonic() < look_s:
            continue
        look_s = time.monotonic() + LOOK_EVERY_S
        try:
            for line in followed.look():
                say(line)
        except LunscopeError as error:
            if str(error) != said:
                say(str(error))
            said = str(error)
    return 0


def _started(arguments: list[str]) -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(arguments) if arguments else None
    except OSError as error:
        raise LunscopeError(f"{arguments[0]}: {error.strerror}") from None


def _hold(change: TunableChange, signals: EndingSignals, duration_s: float) -> int:
    """Wait for the end of the time, or a signal."""
    ends = "until Ctrl-C" if change.record.until_ns is None else f"for {format_duration(duration_s)}"
    say(f"in force {ends}; Ctrl-C restores at once")
    while not change.has_ended(_POLL_S):
        ending = signals.wait(0)
        if ending is not None:
            return 128 + ending
    return 0


def _run(arguments: list[str], signals: EndingSignals | None = None, change: TunableChange | None = None) -> int:
    """Run a command to its end, and return its exit code; say at once if the watchdog of the change ends.

    It gets SIGTERM and SIGHUP; the terminal itself sends SIGINT to both.
    """
    try:
        process = subprocess.Popen(arguments)
    except OSError as error:
        say(f"{arguments[0]}: {error.strerror}")
        return 1
    passed_on = False
    while True:
        try:
            code = process.wait(_POLL_S)
            return code if code >= 0 else 128 - code
        except subprocess.TimeoutExpired:
            ending = None if signals is None or passed_on else signals.wait(0)
            if ending is not None:
                passed_on = True
                if ending is not signal.SIGINT:
                    process.send_signal(ending)
            if change is not None and change.has_ended(0):
                say(f"change {change.record.number}: its watchdog has ended: {change.watchdog_ending}")
                change = None


def _end(change: TunableChange) -> int:
    record = change.end()
    for line in record.problems:
        say(f"change {record.number}: {line}")
    if not record.left:
        say(f"change {record.number}: restored")
    return 1 if record.problems else 0
