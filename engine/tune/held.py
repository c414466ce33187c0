"""The changes that one process holds: made, undone, flipped and kept; what is not kept is restored at its end."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError
from engine.replacing import replace
from engine.tune.change import TunableChange, make_change
from engine.tune.journal import Journal
from engine.tune.persist import Configuration, configuration, settings_of
from engine.tune.planned_writes import SideEffect, TunePlan, Write, make_plan
from engine.tune.present_values import AlikeValues, alike, read_values
from engine.tune.record import ChangeRecord, State
from engine.tune.registry import TUNABLES
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable


class HeldChange(Struct, frozen=True, eq=False):
    """One change in force."""

    change: TunableChange
    plan: TunePlan
    """Plan as applied; the record of a change that has ended has none."""
    request: TunePlan
    """Plan as asked for, on top of what it stands on."""
    settings: Mapping[Tunable, str]
    duration_s: float | None
    superseded: tuple[HeldChange, ...] = ()
    """Changes of the same targets, which it includes; they are made again when it is undone."""

    @property
    def record(self) -> ChangeRecord:
        """What is written of it."""
        return self.change.record


class HeldChanges:
    """Owns the changes of one process; all methods may block on the kernel and belong in a thread of their own."""

    def __init__(self, root: Path = Path("/sys"), journal: Journal | None = None) -> None:
        self._root = root
        self._given_journal = journal
        self._lock = threading.RLock()
        self._tree: KernelTree | None = None
        self._undone: HeldChange | None = None
        """What a flip makes again."""
        self._closed = False
        self._troubled: list[ChangeRecord] = []
        self.in_force: tuple[HeldChange, ...] = ()
        """Oldest first; replaced as a whole, so that it may be read without waiting."""

    @property
    def tree(self) -> KernelTree:
        """The kernel's files."""
        with self._lock:
            if self._tree is None:
                self._tree = KernelTree(self._root)
            return self._tree

    @property
    def _journal(self) -> Journal:
        with self._lock:
            if self._given_journal is None:
                self._given_journal = Journal()
            return self._given_journal

    def values(self, scopes: Sequence[str]) -> list[AlikeValues]:
        """Read all tunables of a scope, targets with equal values together.

        Raises:
            UsageError: the scope names nothing that is there.
        """
        host = Host(self.tree)
        return alike(read_values(host, host.select(scopes), TUNABLES))

    def plan(self, scopes: Sequence[str], settings: Mapping[Tunable, str]) -> TunePlan:
        """Check what a change would write.

        Raises:
            LunscopeError: it is refused.
        """
        host = Host(self.tree)
        return make_plan(host, settings, host.select(scopes))

    def make(self, request: TunePlan, settings: Mapping[Tunable, str], duration_s: float | None) -> HeldChange | None:
        """Make a change on top of those in force; None if nothing differs from the values before all of them.

        Raises:
            LunscopeError: it is refused or failed; what was in force is so again, or the message says what is not.
        """
        with self._lock:
            self._require_open()
            self.drop_ended()
            below = tuple(held for held in self.in_force if held.plan.keys & request.keys)
            plan = combine_plans([held.plan for held in below], request)
            self._end(below)
            try:
                made = self._apply(plan, request, settings, duration_s, below)
            except LunscopeError as error:
                raise type(error)(f"{error}{self._make_again(below)}") from None
            self._undone = None
            return made

    def undo(self) -> ChangeRecord | None:
        """Restore the newest change, and make what it stood on again; None without any.

        Raises:
            LunscopeError: what it stood on cannot be made again.
        """
        with self._lock:
            self.drop_ended()
            if not self.in_force:
                return None
            held = self.in_force[-1]
            self._drop(held)
            record = held.change.end()
            self._undone = held
            problem = self._make_again(held.superseded)
            if problem:
                raise LunscopeError(f"change {record.number} is undone{problem}")
            return record

    def flip(self) -> HeldChange | ChangeRecord | None:
        """Undo the newest change, or make the one again that was undone last; None without any.

        Raises:
            LunscopeError: it failed.
        """
        with self._lock:
            again = self._undone
            if again is None:
                return self.undo()
            return self.make(again.request, again.settings, again.duration_s)

    def keep(self) -> ChangeRecord | None:
        """Leave the newest change in force after the end of this process; None without any.

        Raises:
            LunscopeError: its time is over, or its record cannot be written.
        """
        with self._lock:
            self.drop_ended()
            if not self.in_force:
                return None
            held = self.in_force[-1]
            self._drop(held)
            return held.change.keep()

    def configuration(self) -> Configuration:
        """Write what is kept or in force as configuration files; of two values of one target the later one."""
        own = {held.record.number for held in self.in_force}
        of_tree = (record for record in self._journal.records() if record.root == str(self.tree.root))
        in_force = (record for record in of_tree if record.state is State.KEPT or record.number in own)
        return configuration(self.tree, settings_of(in_force))

    @property
    def has_ended(self) -> bool:
        """Whether the time of a change is over, or its watchdog has ended; without waiting."""
        return bool(self._troubled) or any(held.change.has_ended(0) for held in self.in_force)

    def drop_ended(self) -> None:
        """Forget changes whose time is over, and restore those whose watchdog has failed."""
        with self._lock:
            for held in self.in_force:
                if held.change.has_ended(0):
                    self._drop(held)
                    record = held.change.end()
                    if record.problems:
                        self._troubled.append(record)

    def take_troubled(self) -> list[ChangeRecord]:
        """Return the records of changes that did not end as asked, each once."""
        with self._lock:
            self.drop_ended()
            found, self._troubled = self._troubled, []
            return found

    def close(self) -> list[ChangeRecord]:
        """Restore everything that is not kept, the newest first.

        Returns the records of what was in force, and of what did not end as asked.
        """
        with self._lock:
            self._closed = True
            records = self.take_troubled()
            records += [held.change.end() for held in reversed(self.in_force)]
            self.in_force = ()
            if self._tree is not None:
                self._tree.close()
                self._tree = None
            return records

    def _require_open(self) -> None:
        if self._closed:
            raise LunscopeError("this lunscope is being left: nothing was changed")

    def _apply(
        self,
        plan: TunePlan,
        request: TunePlan,
        settings: Mapping[Tunable, str],
        duration_s: float | None,
        below: tuple[HeldChange, ...],
    ) -> HeldChange | None:
        if not plan.writes:
            return None
        given = {tunable: value for held in below for tunable, value in held.settings.items()} | dict(settings)
        change = make_change(self.tree, plan, given, duration_s=duration_s, journal=self._journal)
        held = HeldChange(change, change.record.plan, request, given, duration_s, below)
        self.in_force = (*self.in_force, held)
        return held

    def _end(self, below: Sequence[HeldChange]) -> None:
        """Restore changes, the newest first, to make one that includes them.

        Raises:
            LunscopeError: somebody else has changed a value since.
        """
        left: list[str] = []
        for held in reversed(below):
            self._drop(held)
            left += held.change.end().problems
        if left:
            raise LunscopeError(f"{left[0]}; nothing was set")

    def _make_again(self, below: Sequence[HeldChange]) -> str:
        """Make changes again as they were; returns the problem, empty if there is none."""
        for held in below:
            try:
                self._again(held)
            except LunscopeError as error:
                return f"; the change before it is not in force any more: {error}"
        return ""

    def _again(self, held: HeldChange) -> None:
        change = make_change(
            self.tree,
            combine_plans((), held.plan),
            dict(held.settings),
            duration_s=held.duration_s,
            journal=self._journal,
        )
        self.in_force = (*self.in_force, replace(held, change=change, plan=change.record.plan))

    def _drop(self, held: HeldChange) -> None:
        self.in_force = tuple(one for one in self.in_force if one is not held)


def combine_plans(earlier: Sequence[TunePlan], latest: TunePlan) -> TunePlan:
    """Combine plans in force with one that was made on top of them; writes that come to nothing are left out.

    Apply the result once the earlier ones are restored: its values before are those before all of them.

    Args:
        earlier: as they were applied, oldest first.
        latest: made from the values of now.
    """
    original = {_key(write): write for plan in reversed(earlier) for write in plan.writes}
    effects = {effect.path: effect for plan in reversed(earlier) for effect in plan.effects}
    remade = {write.target.key for plan in earlier for write in plan.writes if write.tunable.resets}
    writes = {_key(write): write for plan in earlier for write in plan.writes if not _is_removed(write, latest)}
    for write in latest.writes:
        first = original.get(_key(write))
        before, kept = (_before(write, effects, remade), write.kept) if first is None else (first.before, first.kept)
        writes[_key(write)] = replace(write, before=before, kept=kept)
    needed = (one for one in writes.values() if one.before != one.after or _is_reset(one, writes.values()))
    changing = sorted(needed, key=lambda one: one.tunable.phase)
    own = {write.tunable.path(write.target) for write in changing}
    paths = {one.tunable.path(one.target): one.before for plan in reversed(earlier) for one in plan.writes}
    new = (
        replace(effect, before=paths.get(effect.path) or effect.before)
        for effect in latest.effects
        if effect.target.key not in remade
    )
    found = {effect.path: effect for effect in (*new, *effects.values()) if effect.path not in own}
    return TunePlan(tuple(changing), tuple(_still_caused(found.values(), changing)), latest.unchanged)


def _key(write: Write) -> tuple[str, str]:
    return write.tunable.id, write.target.key


def _is_removed(write: Write, latest: TunePlan) -> bool:
    """Whether the file of an earlier write belongs to what the latest plan replaces, as a scheduler its own."""
    maker = _maker(write)
    return bool(maker) and any(_key(one) == (maker, write.target.key) for one in latest.writes)


def _maker(write: Write) -> str:
    """Name the tunable that makes and removes its file; empty for one that is always there."""
    return write.tunable.made_by if write.tunable.phase > 1 else ""


def _is_reset(write: Write, writes: Iterable[Write]) -> bool:
    """Whether the kernel sets it anew with another write, so that the value before all changes must be written."""
    others = (one for one in writes if one.target.key == write.target.key and one.before != one.after)
    return any(write.tunable.file in one.tunable.resets for one in others)


def _before(write: Write, effects: dict[str, SideEffect], remade: set[str]) -> str:
    """Return the value before all changes, of a tunable that none of the earlier ones has set."""
    effect = effects.get(write.tunable.path(write.target))
    if effect is not None:
        return write.tunable.form.value(effect.before, write.target.device) or ""
    return "" if _maker(write) and write.target.key in remade else write.before


def _still_caused(effects: Iterable[SideEffect], writes: Sequence[Write]) -> Iterable[SideEffect]:
    causing = {write.target.key for write in writes if write.tunable.resets}
    return (replace(effect, after="") for effect in effects if effect.target.key in causing)
