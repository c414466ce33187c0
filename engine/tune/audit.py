"""The audit file: a line of JSON for each change that was made, kept, restored, undone or failed.

It may be read by everybody, so that a monitor without privileges can say what root has changed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError, words_of
from engine.strict_json import dump_json, load_json_object
from engine.tune.record import ChangeRecord, State, Who, problems_of

AUDIT_FILE = "audit.jsonl"
MOST_BYTES = 1 << 20
"""A larger file is renamed to `audit.jsonl.1`, in place of an earlier one."""


class AuditEntry(Struct, frozen=True):
    """One line."""

    time_ns: int
    number: int
    state: State
    who: Who
    root: str
    settings: str
    """Settings as given: `nr_requests=64 scheduler=none`."""
    summary: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return one line, as `tune change 3 held: nr_requests 128 -> 64 on sda, by root, pid 812`."""
        done = f"tune change {self.number} {self.state}: {'; '.join(self.summary)}, by {self.who.text}"
        return "; ".join((done, *self.problems))


def append_audit(folder: Path, record: ChangeRecord) -> None:
    """Add a line for a record.

    Raises:
        LunscopeError: the file takes none.
    """
    path = folder / AUDIT_FILE
    document = {
        "time_ns": time.time_ns(),
        "change": record.number,
        "state": record.state,
        "uid": record.who.uid,
        "user": record.who.user,
        "login": record.who.login,
        "pid": record.who.pid,
        "root": record.root,
        "settings": " ".join(f"{name}={value}" for name, value in record.settings),
        "summary": record.summary,
        "left": record.left[:10],
        "trouble": record.trouble,
    }
    try:
        with suppress(FileNotFoundError):
            if path.stat().st_size > MOST_BYTES:
                path.replace(f"{path}.1")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o644)
        try:
            os.write(descriptor, f"{dump_json(document)}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LunscopeError(f"{path}: {words_of(error)}") from None


def parse_audit(line: bytes) -> AuditEntry | None:
    """Read a line; None for a damaged one."""
    try:
        found = load_json_object(line)
        who = Who(int(found["uid"]), str(found["user"]), str(found["login"]), int(found["pid"]))
        summary, left = (tuple(map(str, found[key])) for key in ("summary", "left"))
        problems = problems_of(str(found.get("trouble", "")), left)
        state, number = State(found["state"]), int(found["change"])
        return AuditEntry(
            int(found["time_ns"]), number, state, who, str(found["root"]), str(found["settings"]), summary, problems
        )
    except (ValueError, KeyError, TypeError):
        return None
