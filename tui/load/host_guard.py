"""What the screens ask of the guard; it can wait until targets are chosen, and tests answer otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from engine.job.spec import JobSpec, Permissions

if TYPE_CHECKING:
    from engine.guard.answers import GuardAnswer


class Guard(Protocol):
    """Answers about targets; every call blocks as long as a device does."""

    def answers(self, job: JobSpec, permissions: Permissions) -> Sequence[GuardAnswer]:
        """Say of each target of a job whether it may be read and written."""

    def uses(self) -> Callable[[str], str]:
        """Take a snapshot of the host, and return from a kernel name to what is known to use that device."""


class HostGuard:
    """The guard of this host."""

    def answers(self, job: JobSpec, permissions: Permissions) -> Sequence[GuardAnswer]:
        """Ask about all targets."""
        from engine.guard.answers import guard_answers  # noqa: PLC0415 (slow to import)

        return guard_answers(job, permissions)

    def uses(self) -> Callable[[str], str]:
        """Take a snapshot that is read as it is asked."""
        from engine.guard.answers import quick_snapshot, use_words  # noqa: PLC0415 - as above

        snapshot = quick_snapshot()

        def words(kernel_name: str) -> str:
            try:
                return use_words(snapshot, kernel_name)
            except OSError as error:
                return f"cannot see what uses it ({error.strerror})"

        return words
