"""The measurements of this process, one after the other over one load: sweeps, searches, the parts of presets."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from engine.errors import LunscopeError
from engine.text import safe_text

if TYPE_CHECKING:  # Every start of the screens imports this module, and few measure.
    from engine.study.order import NextStudy, StudyOrder
    from tui.load.load_controller import LoadController
    from tui.sweep.session import StudySession


class SessionGroup(Struct):
    """Measurements that were asked for together."""

    order: StudyOrder
    sessions: list[StudySession]
    following: list[NextStudy]

    @classmethod
    def of(cls, order: StudyOrder, controller: LoadController) -> SessionGroup:
        """Make the first measurement of an order over the load of a controller."""
        from tui.sweep.session import StudySession  # noqa: PLC0415 (see above)

        return cls(order, [StudySession(order.first, controller)], list(order.following))

    def make_next(self, step: NextStudy) -> StudySession:
        """Make what follows, of what was measured before; may raise a LunscopeError."""
        from tui.sweep.session import StudySession  # noqa: PLC0415 (see above)

        before = self.sessions[-1].controller
        session = StudySession(step.make(self.results), before)
        self.sessions.append(session)
        return session

    @property
    def results(self) -> list[Any]:
        """What was measured up to now, of those that began."""
        return [result for session in self.sessions if (result := session.result) is not None]


class SweepSeries:
    """Begins each measurement when the one before is complete; members are called by the screen, but for `_go_on`."""

    def __init__(self, group: SessionGroup | None = None) -> None:
        self._groups = [] if group is None else [group]
        self._stop = threading.Event()
        self._note = ""

    @property
    def groups(self) -> tuple[SessionGroup, ...]:
        """All, in the order in which they were asked for."""
        return tuple(self._groups)

    @property
    def sessions(self) -> tuple[StudySession, ...]:
        """All that began or are about to, in their order."""
        return tuple(session for group in self._groups for session in group.sessions)

    @property
    def current(self) -> StudySession | None:
        """The one that measures, or measured last; None before the first."""
        return self._groups[-1].sessions[-1] if self._groups else None

    @property
    def note(self) -> str:
        """What happens between two measurements, or why the next one did not begin; else empty."""
        return self._note

    @property
    def is_busy(self) -> bool:
        """Whether something is measured, or follows at once."""
        current = self.current
        if current is None:
            return False
        from tui.sweep.state import RUNNING_PHASES  # noqa: PLC0415 (see above)

        return current.state.phase in RUNNING_PHASES or bool(self._note and not self._stop.is_set())

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of what is to begin."""
        return min((session.study.plan.least_read_pct for session in self._groups[-1].sessions), default=100.0)

    def add(self, group: SessionGroup) -> None:
        """Take what is to begin next; nothing may be measured meanwhile."""
        self._groups.append(group)
        self._stop.clear()
        self._note = ""

    def begin(self) -> None:
        """Begin the last group."""
        group = self._groups[-1]
        group.sessions[-1].begin(self._after(group))

    def stop(self) -> None:
        """End what is measured; nothing follows."""
        self._stop.set()
        if self.current is not None:
            self.current.stop()

    def close(self) -> None:
        """Begin to end, as the screens are left."""
        self._stop.set()
        if self.current is not None:
            self.current.close()

    def _after(self, group: SessionGroup) -> Callable[[bool], None] | None:
        if not group.following:
            return None

        def go_on(is_complete: bool) -> None:
            self._go_on(group, is_complete=is_complete)

        return go_on

    def _go_on(self, group: SessionGroup, *, is_complete: bool) -> None:
        """Begin what follows; in the thread of the measurement before."""
        if not is_complete or self._stop.is_set():
            return
        step = group.following.pop(0)
        self._note = "prepares the next part"
        try:
            if step.command:
                from engine.sweep.presets.command import run_command  # noqa: PLC0415 (see above)

                self._note = f"runs {safe_text(step.command)}"
                run_command(step.command, self._stop.wait, subprocess.DEVNULL)
            session = group.make_next(step)
        except LunscopeError as error:
            self._stop.set()
            self._note = str(error)
            return
        self._note = ""
        if not self._stop.is_set():
            session.begin(self._after(group))
