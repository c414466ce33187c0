"""Making a change: all of it or nothing, recorded before it begins, and restored at its end unless it is kept."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from engine.errors import LunscopeError
from engine.helper_process import HelperProcess
from engine.replacing import replace
from engine.text import safe_text
from engine.tune.apply import Restored, apply_plan, check_unchanged, restore
from engine.tune.journal import Journal
from engine.tune.planned_writes import TunePlan
from engine.tune.record import ChangeRecord, State, names_text, summarize, who_is_this
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable
from engine.tune.watchdog import KEEP, restore_record

_MODULE = "engine.tune.watchdog"
_CENTURY_S = 100 * 365.25 * 86400
_DAY_S = 86400


class Watchdog(HelperProcess):
    """The process that restores a change; it has what it needs before the first value is written."""

    def __init__(self, journal: Journal, number: int, lock: int) -> None:
        super().__init__(_MODULE, [str(journal.folder), str(number)], pass_fds=[lock])

    def wait_ready(self) -> None:
        """Wait until it has read the record.

        Raises:
            LunscopeError: it could not start.
        """
        if not self.is_ready():
            self.end()
            raise LunscopeError(f"the watchdog that restores the values did not start: {self.ending}")

    def hold(self, duration_s: float | None) -> None:
        """Restore after a time; None: when this process ends.

        Raises:
            LunscopeError: it has ended.
        """
        if duration_s is not None:
            self.send(f"{duration_s}\n".encode())

    def keep(self) -> None:
        """Have it restore nothing."""
        with suppress(LunscopeError):
            self.send(KEEP)


class TunableChange:
    """One change in force; `end` restores it, and so does the end of this process."""

    def __init__(self, tree: KernelTree, journal: Journal, record: ChangeRecord, watchdog: Watchdog, lock: int) -> None:
        self._tree, self._journal, self._watchdog, self._lock = tree, journal, watchdog, lock
        self.record = record

    def has_ended(self, timeout_s: float) -> bool:
        """Wait for the end of its time, or of its watchdog."""
        return self._watchdog.has_ended(timeout_s)

    @property
    def watchdog_ending(self) -> str:
        """Say how its watchdog ended."""
        return self._watchdog.ending

    def keep(self) -> ChangeRecord:
        """Leave it in force until it is undone; return its record.

        Raises:
            LunscopeError: its time is over, or its record cannot be written.
        """
        if self.has_ended(0):
            over = "; ".join((f"change {self.record.number} is over", *self.end().problems))
            raise LunscopeError(f"{over}: set its values again")
        self._journal.write(replace(self.record, state=State.KEPT, until_ns=None))
        self._watchdog.keep()
        return self.end()

    def end(self) -> ChangeRecord:
        """Restore the values, unless the change is kept; return its record."""
        self._watchdog.end()
        try:
            record = self._journal.read(self.record.number)
        except LunscopeError:
            # Somebody has removed the folder: what the watchdog has not restored this process does.
            record = self.record
        if record.state in {State.CHANGING, State.HELD}:
            trouble = f"its watchdog failed: {self._watchdog.ending}"
            record = restore_record(self._tree, self._journal, record, trouble)
        os.close(self._lock)
        self.record = record
        return record


def make_change(
    tree: KernelTree,
    plan: TunePlan,
    settings: dict[Tunable, str],
    *,
    keep: bool = False,
    duration_s: float | None = None,
    nearest: bool = False,
    journal: Journal | None = None,
) -> TunableChange:
    """Write a plan and compare; restore everything if one value fails.

    Args:
        tree: the kernel's files.
        plan: what to write.
        settings: as given, for the record.
        keep: leave it in force until it is undone; otherwise until `Change.end`, or the end of this process.
        duration_s: restore it after this time at the latest; more than a century is for as long as this process runs.
        nearest: keep values that the kernel made of those given.
        journal: where records are; of this user by default.

    Raises:
        LunscopeError: another lunscope holds one of the targets, or a value failed; then all values are as before, or
            the message says which are not.
    """
    journal = Journal() if journal is None else journal
    duration_s = None if duration_s is None or duration_s > _CENTURY_S else duration_s
    with journal.locked():
        refuse_held(journal, tree, plan)
        journal.remove_old()
        record = _new_record(journal, tree, plan, settings)
        journal.write(record)
        lock = journal.hold(record.number)
    change = TunableChange(tree, journal, record, _start_watchdog(journal, record, lock), lock)
    try:
        change._watchdog.wait_ready()
        check_unchanged(tree, plan)
        applied = apply_plan(tree, plan, nearest=nearest)
        change.record = _in_force(record, applied, keep=keep, duration_s=duration_s)
        journal.write(change.record)
        change._watchdog.hold(duration_s)
    except LunscopeError as error:
        raise type(error)(f"{error}; {_outcome(change.end())}") from None
    except BaseException:
        change.end()
        raise
    if keep:
        change._watchdog.keep()
        change.end()
    return change


def _start_watchdog(journal: Journal, record: ChangeRecord, lock: int) -> Watchdog:
    try:
        return Watchdog(journal, record.number, lock)
    except LunscopeError as error:
        os.close(lock)
        journal.write(record.end(State.FAILED))
        raise LunscopeError(f"the watchdog that restores the values did not start: {error}") from None


def _new_record(journal: Journal, tree: KernelTree, plan: TunePlan, settings: dict[Tunable, str]) -> ChangeRecord:
    given = tuple((tunable.id, value) for tunable, value in settings.items())
    number, who = journal.next_number(), who_is_this()
    return ChangeRecord(number, State.CHANGING, time.time_ns(), who, str(tree.root), given, summarize(plan), plan)


def _in_force(record: ChangeRecord, applied: TunePlan, *, keep: bool, duration_s: float | None) -> ChangeRecord:
    state = State.KEPT if keep else State.HELD
    until_ns = None if duration_s is None or keep else time.time_ns() + int(duration_s * 1e9)
    return replace(record, state=state, plan=applied, summary=summarize(applied), until_ns=until_ns)


def _outcome(record: ChangeRecord) -> str:
    problems = record.problems
    if not problems:
        return "all values are as before"
    more = f" and {len(problems) - 1:,} more" if len(problems) > 1 else ""
    return f"{problems[0]}{more}{'' if record.left else '; all values are as before'}"


def refuse_held(journal: Journal, tree: KernelTree, plan: TunePlan) -> None:
    """Refuse targets that another lunscope changes now.

    Raises:
        LunscopeError: one is held, or was left changed by a crash.
    """
    root, keys = str(tree.root), plan.keys
    for record in journal.records():
        if record.state not in {State.CHANGING, State.HELD} or record.root != root:
            continue
        common = [write.target.name for write in record.plan.writes if write.target.key in keys]
        if not common:
            continue
        names = names_text(list(dict.fromkeys(common)))
        if journal.is_held(record.number):
            raise LunscopeError(f"{names}: held by {record.text}{_until(record)}; wait, or end that process")
        fix = f"`lunscope tune undo --change {record.number}` restores it"
        raise LunscopeError(f"{names}: left changed by a crash of {safe_text(record.who.text)}; {fix}")


def _until(record: ChangeRecord) -> str:
    if record.until_ns is None:
        return ""
    until_s = record.until_ns / 1e9
    day = "%Y-%m-%d " if until_s - time.time() > _DAY_S else ""
    return time.strftime(f", until {day}%H:%M:%S", time.localtime(until_s))


def undo(tree: KernelTree, journal: Journal, record: ChangeRecord, *, force: bool = False) -> Restored:
    """Restore a change that was kept or left by a crash; what others have changed since stays, unless forced.

    What stays remains in the record, so that it can be undone with `force` later.

    Raises:
        LunscopeError: another lunscope holds one of its targets.
    """
    with journal.locked():
        record = journal.read(record.number)
        if record.state in {State.CHANGING, State.HELD} and journal.is_held(record.number):
            raise LunscopeError(f"{record.text} is held{_until(record)}: end that process, which restores it")
        if record.state is State.KEPT:
            refuse_held(journal, tree, record.plan)
        restored = restore(tree, record.plan, force=force or record.state is State.CHANGING)
        if restored.remaining:
            rest = replace(record.plan, writes=restored.remaining)
            journal.write(replace(record, state=State.KEPT, plan=rest, left=restored.left))
        else:
            journal.write(record.end(State.UNDONE, restored.left))
    return restored
