"""A change that follows its scope: devices that arrive later get its values, and what no longer has them is said."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.errors import UsageError
from engine.replacing import replace
from engine.text import safe_text, short_text
from engine.tune.audit import append_audit
from engine.tune.change import TunableChange, make_change
from engine.tune.journal import Journal
from engine.tune.planned_writes import TunePlan, Write, make_plan
from engine.tune.record import ChangeRecord
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Tunable

LOOK_EVERY_S = 1.0
"""Between two looks at a scope."""


class FollowedScope:
    """The changes of one scope, made as its devices come; ended together."""

    def __init__(
        self,
        tree: KernelTree,
        settings: Mapping[Tunable, str],
        scopes: Sequence[str],
        *,
        duration_s: float | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._tree, self._settings, self._scopes = tree, dict(settings), scopes
        self._duration_s, self._journal = duration_s, Journal() if journal is None else journal
        self._said: set[tuple[str, str, str]] = set()
        self.changes: tuple[TunableChange, ...] = ()

    def look(self) -> Iterator[str]:
        """Set the values on what has come since, and yield what was set and what has drifted, a line each.

        A value that somebody else, or the kernel on QUEUE FULL, has set since is left: it is said once, and is an event
        of recordings.

        Raises:
            LunscopeError: a value cannot be set; those before stay in force.
        """
        host = Host(self._tree)
        try:
            plan = make_plan(host, self._settings, host.select(self._scopes))
        except UsageError:
            return  # Nothing of the scope is there now.
        held = frozenset(key for change in self.changes for key in change.record.plan.keys)
        new = tuple(write for write in plan.writes if write.target.key not in held)
        if new:
            keys = {write.target.key for write in new}
            effects = tuple(effect for effect in plan.effects if effect.target.key in keys)
            change = make_change(
                self._tree,
                TunePlan(new, effects),
                self._settings,
                duration_s=self._duration_s,
                journal=self._journal,
            )
            self.changes = (*self.changes, change)
            yield from change.record.summary
        drifted = [write for write in plan.writes if write.target.key in held and self._is_news(write)]
        lines = [_drift(write) for write in drifted]
        if lines:
            record = self.changes[0].record
            append_audit(self._journal.folder, replace(record, summary=tuple(lines)))
        yield from lines

    def end(self) -> list[ChangeRecord]:
        """Restore everything, the newest first; returns the records."""
        return [change.end() for change in reversed(self.changes)]

    def _is_news(self, write: Write) -> bool:
        found = (write.tunable.id, write.target.key, write.before)
        is_news = found not in self._said
        self._said.add(found)
        return is_news


def _drift(write: Write) -> str:
    shown = safe_text(short_text(write.before, 80))
    return f"{write.tunable.id} of {safe_text(write.target.name)} has become {shown}, not {write.after} as it was set"
