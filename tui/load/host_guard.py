"""What the screens ask of the guard, which tests answer otherwise, and of the operator before a target is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from engine.job.spec import JobSpec, Permissions, TargetIdentity

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


class WriteQuestion(Struct, frozen=True):
    """One target whose name must be typed; the permission is for what has the name now."""

    path: str
    found: str
    """What the guard found on it; safe to print."""
    refusal: str = ""
    """Why it is not written, whatever is typed; empty if its name permits it."""
    identity: TargetIdentity | None = None
    forgotten: str = ""
    """Why permissions given before no longer hold; empty if they do."""
