"""Looks after a running load: notes targets that fail and recover, and notices its end."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from engine.errno_text import describe_error
from engine.errors import RefusedError
from engine.events import EventKind
from engine.running.board import Board
from engine.running.path_watch import PathCounterWatch
from engine.running.tap import ERRORS, SKIPPED
from engine.running.watchdog import GIVE_UP_S, FailureNews, FailureWatch
from engine.verify.watch import DamageWatch

if TYPE_CHECKING:
    from engine.running.driver import LoadDriver

LOOK_S = 0.05
"""How often it looks."""
_TELL_NS = 1_000_000_000
"""How often it judges what is known of the figures, and says what the fan-out costs."""


def look_after(driver: LoadDriver, board: Board, ended: threading.Event) -> str | None:
    """Watch until the load is over; blocks.

    Returns:
        Why it must end or has ended by itself, "" if its runtime is over, None if `ended` was set by somebody else.
    """
    watch, paths, next_tell_ns = FailureWatch(), PathCounterWatch(), time.monotonic_ns() + _TELL_NS
    damage = DamageWatch()
    while not ended.wait(LOOK_S):
        counters = driver.look()
        if counters is None:
            return None
        now_ns = time.monotonic_ns()
        errors, skipped = (int(counters[:, column].sum()) for column in (ERRORS, SKIPPED))
        board.change(errors=errors, skipped=skipped, waits=driver.waits)
        if now_ns >= next_tell_ns:
            next_tell_ns = now_ns + _TELL_NS
            board.change(badges=driver.badges, tail=driver.tail())
        _report(driver, board, watch.observe(counters, now_ns))
        paths.observe(*driver.look_at_paths(), board)
        damage.observe(driver, board)
        try:
            driver.look_at_users()
        except RefusedError as refusal:
            return str(refusal)
        if not driver.running:
            return driver.fault
        if watch.hopeless(now_ns):
            return f"every I/O failed for more than {GIVE_UP_S:g} s ({_first_error(driver)})"
    return None


def _report(driver: LoadDriver, board: Board, news: FailureNews) -> None:
    for index in news.began:
        name = driver.target_names[index]
        text = f"{name}: I/Os fail ({_first_error(driver, name)}); it is only probed until it answers"
        board.note(EventKind.LOAD, text, {"failing": name})
    for index in news.recovered:
        name = driver.target_names[index]
        board.note(EventKind.LOAD, f"{name}: answers again", {"recovered": name})


def _first_error(driver: LoadDriver, name: str | None = None) -> str:
    for error in driver.errors():
        if name is None or error.target == name:
            return describe_error(error.errno, error.direction, error.first_offset)
    return "no error is known"
