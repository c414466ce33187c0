"""Making a change: all of it or nothing, recorded before it begins, and restored at its end unless it is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import engine
from engine.errors import LunscopeError
from engine.replacing import replace
from engine.text import safe_text
from engine.tune.apply import Restored, apply_plan, check_unchanged, restore
from engine.tune.journal import Journal
from engine.tune.plan import TunePlan
from engine.tune.record import ChangeRecord, State, names_text, summarize, who_is_this
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable
from engine.tune.watchdog import KEEP, READY, restore_record

_START = "import sys; sys.path.insert(0, sys.argv.pop()); from engine.tune.watchdog import main; sys.exit(main())"
_PATIENCE_S = 30.0


class Watchdog:
    """The process that restores a change; it has what it needs before the first value is written."""

    def __init__(self, journal: Journal, number: int, lock: int) -> None:
        package = Path(engine.__file__).parent.parent
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(journal.folder), str(number), str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            pass_fds=[lock],
        )

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def wait_ready(self) -> None:
        """Wait until it has read the record.

        Raises:
            LunscopeError: it could not start.
        """
        assert self._process.stdout is not None
        if self._process.stdout.readline() != READY:
            self.end()
            raise LunscopeError("the watchdog that restores the values did not start: nothing was changed")

    def hold(self, duration_s: float | None) -> None:
        """Restore after a time; None: when this process ends."""
        if duration_s is not None:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{duration_s}\n".encode())
            self._process.stdin.flush()

    def keep(self) -> None:
        """Have it restore nothing."""
        assert self._process.stdin is not None
        self._process.stdin.write(KEEP)
        self._process.stdin.flush()

    def has_ended(self, timeout_s: float) -> bool:
        """Wait for its end, which is the end of the change."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Have it finish and wait for that."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue
        self._process.wait()


class TunableChange:
    """One change in force; `end` restores it, and so does the end of this process."""

    def __init__(self, tree: KernelTree, journal: Journal, record: ChangeRecord, watchdog: Watchdog, lock: int) -> None:
        self._tree, self._journal, self._watchdog, self._lock = tree, journal, watchdog, lock
        self.record = record

    def has_ended(self, timeout_s: float) -> bool:
        """Wait for the end of its time."""
        return self._watchdog.has_ended(timeout_s)

    def keep(self) -> ChangeRecord:
        """Leave it in force until it is undone; return its record.

        Raises:
            LunscopeError: its time is over, or its record cannot be written.
        """
        if self.has_ended(0):
            raise LunscopeError(f"change {self.record.number} is over: its values are restored; set them again")
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
            # The watchdog was killed.
            record = restore_record(self._tree, self._journal, record)
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
        duration_s: restore it after this time at the latest.
        nearest: keep values that the kernel made of those given.
        journal: where records are; of this user by default.

    Raises:
        LunscopeError: another lunscope holds one of the targets, or a value failed; then all values are as before, or
            the message says which are not.
    """
    journal = Journal() if journal is None else journal
    with journal.locked():
        refuse_held(journal, tree, plan)
        journal.remove_old()
        record = _new_record(journal, tree, plan, settings)
        journal.write(record)
        lock = journal.hold(record.number)
    change = TunableChange(tree, journal, record, Watchdog(journal, record.number, lock), lock)
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


def _new_record(journal: Journal, tree: KernelTree, plan: TunePlan, settings: dict[Tunable, str]) -> ChangeRecord:
    given = tuple((tunable.id, value) for tunable, value in settings.items())
    number, who = journal.next_number(), who_is_this()
    return ChangeRecord(number, State.CHANGING, time.time_ns(), who, str(tree.root), given, summarize(plan), plan)


def _in_force(record: ChangeRecord, applied: TunePlan, *, keep: bool, duration_s: float | None) -> ChangeRecord:
    state = State.KEPT if keep else State.HELD
    until_ns = None if duration_s is None or keep else time.time_ns() + int(duration_s * 1e9)
    return replace(record, state=state, plan=applied, summary=summarize(applied), until_ns=until_ns)


def _outcome(record: ChangeRecord) -> str:
    if record.left:
        more = f" and {len(record.left) - 1:,} more" if len(record.left) > 1 else ""
        return f"not restored: {record.left[0]}{more}"
    return "all values are as before"


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
    return time.strftime(", until %H:%M:%S", time.localtime(record.until_ns / 1e9))


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
