"""What the keys of a load screen drive: a load of this host, or one over the hosts of a fleet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from tui.load.knob_memory import KnobMemory
from tui.load.write_question import WriteQuestion


class DrivenLoad(Protocol):
    """A load whose knobs are turned; `arm`, `start` and `stop` block and belong in a thread."""

    @property
    def memory(self) -> KnobMemory:
        """Knobs to go back to."""

    @property
    def job(self) -> JobSpec:
        """The job to be armed, or running."""

    @property
    def knobs(self) -> Knobs:
        """The knobs last requested."""

    def unconfirmed(self, knobs: Knobs) -> tuple[str, ...]:
        """Paths these knobs would write to whose names were not typed yet."""

    def question(self, path: str) -> WriteQuestion:
        """Look at a target that is to be written; blocks as long as it does."""

    def confirm(self, question: WriteQuestion) -> None:
        """Take the name of a target that was typed."""

    def arm(self) -> None:
        """Check and prepare the targets."""

    def start(self) -> None:
        """Start, arming first."""

    def stop(self) -> None:
        """Stop, or end the preparation."""

    def turn(self, knobs: Knobs, done: Callable[[str], None]) -> None:
        """Turn the knobs without blocking; `done` gets what was refused, or an empty text."""

    def is_turned_live(self) -> bool:
        """Whether a turn changes a running load."""

    def needs_restart(self, knobs: Knobs) -> bool:
        """Whether these knobs write and the load was armed for reading only."""
