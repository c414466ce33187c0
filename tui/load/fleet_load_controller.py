"""The controller of a load over the hosts of a fleet: confirmations, knobs to go back to, and the drive."""

from __future__ import annotations

from collections.abc import Callable

from collectors.fleet.fleet_drive import FleetDrive
from engine.job.spec import JobSpec, Knobs
from engine.running.status import LoadState, LoadStatus
from tui.load.host_guard import WriteQuestion
from tui.load.knob_memory import KnobMemory


class FleetLoadController:
    """Drives one load over all hosts, by the members that the screen uses of LoadController.

    Writing to a path needs both: permission for it on each host, and its name typed on the screen once for all hosts.
    """

    def __init__(self, drive: FleetDrive) -> None:
        self.drive = drive
        self.memory = KnobMemory()
        """Knobs to go back to."""
        self._typed: set[str] = set()
        self._starts = True

    def take_start(self) -> bool:
        """Whether the screen starts the load: once."""
        starts, self._starts = self._starts, False
        return starts

    @property
    def status(self) -> LoadStatus:
        """Status of the load."""
        return self.drive.status

    @property
    def job(self) -> JobSpec:
        """The job of each host."""
        return self.drive.job

    @property
    def knobs(self) -> Knobs:
        """The knobs of each host."""
        return self.drive.knobs

    @property
    def writes(self) -> bool:
        """Whether the load runs and writes."""
        return self.status.state is LoadState.RUNNING and self.knobs.read_pct < 100

    def unconfirmed(self, knobs: Knobs) -> tuple[str, ...]:
        """Paths these knobs would write to whose names were not typed yet."""
        return () if knobs.read_pct >= 100 else tuple(path for path in self.drive.paths if path not in self._typed)

    def question(self, path: str) -> WriteQuestion:
        """Say who looks at it: each host, at the start."""
        return WriteQuestion(path, "The guard of each host looks at what is on it there.")

    def confirm(self, question: WriteQuestion) -> None:
        """Take the name of a path that was typed."""
        self._typed.add(question.path)

    def arm(self) -> None:
        """Start: hosts arm when they start."""
        self.start()

    def start(self) -> None:
        """Wait for the hosts, check their targets and start; blocks until the load has ended."""
        self.drive.run()

    def stop(self) -> None:
        """Stop on all hosts; blocks until all I/Os completed."""
        self.drive.stop()

    def turn(self, knobs: Knobs, done: Callable[[str], None]) -> None:
        """Turn the knobs of all hosts at one time; never blocks."""
        self.drive.request_turn(knobs, done)

    def is_turned_live(self) -> bool:
        """Whether a turn changes a running load; otherwise it changes the job for the next start."""
        return self.status.state is LoadState.RUNNING

    def needs_restart(self, knobs: Knobs) -> bool:
        """Whether a turn needs another start: never, as hosts open for writing what they may write to."""
        del knobs
        return False
