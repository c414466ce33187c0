"""The record of one change: who changed what, when, from which values, and whether it is still in force."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.errors import LunscopeError
from engine.replacing import replace
from engine.strict_json import dump_json, load_json_object
from engine.text import safe_text, whole_number
from engine.tune.planned_writes import SideEffect, TunePlan, Write
from engine.tune.registry import BY_ID
from engine.tune.tunable import Target, TunedKind

_NO_LOGIN = 2**32 - 1
"""loginuid of processes that no login has started (proc_pid_loginuid(5))."""


class State(StrEnum):
    """Whether a change is in force."""

    CHANGING = "changing"
    HELD = "held"
    """In force until its lunscope ends or its time is over."""
    KEPT = "kept"
    """In force until somebody undoes it."""
    REVERTED = "reverted"
    """Restored at its end."""
    UNDONE = "undone"
    FAILED = "failed"
    """Not made: nothing of it is in force."""


OPEN = frozenset({State.CHANGING, State.HELD, State.KEPT})
"""States in which values of a change are in force."""


class Who(Struct, frozen=True):
    """Who made a change."""

    uid: int
    user: str
    login: str
    """The user who logged in, whatever the user is now (sudo); empty if unknown."""
    pid: int

    @property
    def text(self) -> str:
        """Return words for it, as `root (login alice), pid 812`."""
        login = f" (login {self.login})" if self.login and self.login != self.user else ""
        return safe_text(f"{self.user}{login}, pid {self.pid}")


class ChangeRecord(Struct, frozen=True):
    """One change."""

    number: int
    state: State
    time_ns: int
    """Wall time of its begin."""
    who: Who
    root: str
    """The tree it is in, /sys."""
    settings: tuple[tuple[str, str], ...]
    """Tunables and values as given."""
    summary: tuple[str, ...]
    """A line for each tunable: from, to, on how many targets."""
    plan: TunePlan
    """Plan; it has no writes once the change is over."""
    until_ns: int | None = None
    """Wall time at which it is restored; None while its lunscope runs."""
    ended_ns: int | None = None
    left: tuple[str, ...] = ()
    """What restoring it left as it was, a line each."""
    trouble: str = ""
    """Why its watchdog did not restore it at its end; empty if it did."""

    @property
    def problems(self) -> tuple[str, ...]:
        """Return what was wrong at its end, a line each; none if all was as asked."""
        return problems_of(self.trouble, self.left)

    @property
    def text(self) -> str:
        """Return one line: what and who."""
        return f"change {self.number}: {'; '.join(self.summary)} by {self.who.text}"

    def end(self, state: State, left: Iterable[str] = (), trouble: str = "") -> ChangeRecord:
        """Return it as ended now; without its writes unless some of them are still in force."""
        plan, now_ns = TunePlan(()), time.time_ns()
        return replace(self, state=state, ended_ns=now_ns, left=tuple(left), trouble=trouble, plan=plan)


def problems_of(trouble: str, left: Iterable[str]) -> tuple[str, ...]:
    """Put what was wrong at the end of a change into lines."""
    return (*((trouble,) if trouble else ()), *(f"not restored: {line}" for line in left))


def who_is_this() -> Who:
    """Describe the user of this process."""
    return Who(os.getuid(), _name(os.getuid()), _login(), os.getpid())


def _login() -> str:
    try:
        number = whole_number(Path("/proc/self/loginuid").read_text().strip())
    except OSError:
        number = None
    if number is not None and number != _NO_LOGIN:
        return _name(number)
    return os.environ.get("SUDO_USER", "")


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return f"uid {uid}"


def summarize(plan: TunePlan) -> tuple[str, ...]:
    """Say what a change is, a line for each tunable and pair of values.

    As in `queue_depth 32 -> 64 on sda, sdb, sdc and 3 more`.
    """
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for write in plan.writes:
        groups.setdefault((write.tunable.id, write.before, write.after, ""), []).append(write.target.name)
    for effect in plan.effects:
        if effect.after and effect.after != effect.before:
            file = effect.path.removeprefix(f"{effect.target.folder}/queue/")
            groups.setdefault((file, effect.before, effect.after, " by the kernel"), []).append(effect.target.name)
    return tuple(
        f"{name} {before or 'absent'} -> {after} on {names_text(names)}{by}"
        for (name, before, after, by), names in groups.items()
    )


def names_text(names: Sequence[str], most: int = 3) -> str:
    """List the first names and say how many there are more."""
    shown = ", ".join(safe_text(name) for name in names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown


def to_json(record: ChangeRecord) -> str:
    """Write a record as one JSON document."""
    targets: dict[Target, int] = {}
    inodes: list[int] = []
    entries: tuple[Write | SideEffect, ...] = (*record.plan.writes, *record.plan.effects)
    for entry in entries:
        if entry.target not in targets:
            targets[entry.target] = len(targets)
            inodes.append(entry.inode)
    document = {
        "schema": "lunscope.tune-change/1",
        "number": record.number,
        "state": record.state,
        "time_ns": record.time_ns,
        "uid": record.who.uid,
        "user": record.who.user,
        "login": record.who.login,
        "pid": record.who.pid,
        "root": record.root,
        "settings": record.settings,
        "summary": record.summary,
        "until_ns": record.until_ns,
        "ended_ns": record.ended_ns,
        "left": record.left,
        "trouble": record.trouble,
        "targets": [
            [one.subject, one.name, one.folder, one.device, one.holder, inode]
            for one, inode in zip(targets, inodes, strict=True)
        ],
        "writes": [
            [one.tunable.id, targets[one.target], one.before, one.after, *([one.kept] if one.kept else [])]
            for one in record.plan.writes
        ],
        "effects": [[targets[one.target], one.path, one.before, one.after] for one in record.plan.effects],
    }
    return dump_json(document)


def from_json(text: str, name: str) -> ChangeRecord:
    """Read a record.

    Raises:
        LunscopeError: it is damaged, or of another version.
    """
    try:
        return _read(load_json_object(text))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise LunscopeError(f"{name}: no record of a change ({type(error).__name__}): remove it") from None


def _read(document: dict[str, Any]) -> ChangeRecord:
    if document["schema"] != "lunscope.tune-change/1":
        raise ValueError(document["schema"])
    targets = [
        (Target(TunedKind(subject), name, folder, device, holder), int(inode))
        for subject, name, folder, device, holder, inode in document["targets"]
    ]
    writes = tuple(
        Write(BY_ID[name], targets[position][0], targets[position][1], before, after, *kept)
        for name, position, before, after, *kept in document["writes"]
    )
    effects = tuple(
        SideEffect(targets[position][0], targets[position][1], path, before, after)
        for position, path, before, after in document["effects"]
    )
    return ChangeRecord(
        int(document["number"]),
        State(document["state"]),
        int(document["time_ns"]),
        Who(int(document["uid"]), str(document["user"]), str(document["login"]), int(document["pid"])),
        str(document["root"]),
        tuple((str(name), str(value)) for name, value in document["settings"]),
        tuple(map(str, document["summary"])),
        TunePlan(writes, effects),
        document["until_ns"],
        document["ended_ns"],
        tuple(map(str, document["left"])),
        str(document.get("trouble", "")),
    )
