"""The controller of the load screen: the current job, confirmations, and the load control."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from collectors.advice.point_watch import DeviceWatch
from engine.errors import OtherTargetError, RefusedError, UsageError
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.job.target_text import format_target
from engine.replacing import replace
from engine.running.status import LoadState, LoadStatus
from tui.kept import RecentTargets
from tui.load.host_guard import Guard, HostGuard, WriteQuestion
from tui.load.knob_memory import KnobMemory

if TYPE_CHECKING:
    from engine.running.control import LoadControl
    from engine.running.knob_turns import Done

_FORGOTTEN = "All permissions to write and to destroy data are forgotten"
BUSY_STATES = frozenset({LoadState.PREPARING, LoadState.STOPPING})
LIVE_STATES = frozenset({LoadState.ARMED, LoadState.RUNNING})


class LoadController:
    """Owns the current job; `arm`, `start` and `stop` block and belong in a thread.

    Writing to a path needs both: permission for exactly that path, and its name typed on the screen.
    """

    def __init__(
        self,
        control: LoadControl,
        job: JobSpec,
        permissions: Permissions,
        *,
        sysfs: Path = Path("/sys"),
        guard: Guard | None = None,
        recent: RecentTargets | None = None,
    ) -> None:
        self.control = control
        self.guard: Guard = guard or HostGuard()
        self.memory = KnobMemory()
        """Knobs to go back to."""
        self.recent = recent or RecentTargets()
        self.taken = 0
        """How many jobs were set elsewhere than in the form."""
        self.sysfs = sysfs
        self.watch = DeviceWatch(lambda: control.status, sysfs)
        """What the devices do while a point of a sweep is measured; the app feeds it."""
        self._job = job
        """Job with the knobs of `control.knobs`."""
        control.knobs.prepare(job.knobs)
        self._permissions = permissions
        self._typed_first = permissions.typed
        self._of_file = _nodes(job) - permissions.typed
        """Names that a job file gave: to see one in the form is not to give it."""
        self._typed: set[str] = set()
        self._armed: tuple[JobSpec, Permissions] | None = None
        self._held: Callable[[], str] = lambda: ""

    @property
    def status(self) -> LoadStatus:
        """Status of the load."""
        return self.control.status

    @property
    def job(self) -> JobSpec:
        """The job to be armed, or running."""
        return replace(self._job, knobs=self.knobs)

    @property
    def knobs(self) -> Knobs:
        """The knobs last requested: in force, pending, or for the next start."""
        return self.control.knobs.asked

    @property
    def permissions(self) -> Permissions:
        """Permissions to write and destroy."""
        return self._permissions

    def hold(self, reason: Callable[[], str]) -> None:
        """Refuse to arm, edit or turn while `reason` gives one: a sweep turns the knobs then."""
        self._held = reason

    def require_free(self) -> None:
        """Check that nothing else uses the load.

        Raises:
            UsageError: a sweep does.
        """
        reason = self._held()
        if reason:
            raise UsageError(reason)

    def edit(self, job: JobSpec, *, destroy_data: bool) -> None:
        """Replace the job; it must be armed again.

        Raises:
            UsageError: the load runs or is being prepared.
            RefusedError: destroying was not confirmed.
        """
        self.require_free()
        if destroy_data and not self._permissions.destroy_data:
            raise RefusedError("destroying data needs its own confirmation")
        if self.status.state in BUSY_STATES | {LoadState.RUNNING}:
            raise UsageError(f"the job cannot be changed while it is {self.status.state}: stop it first")
        self.control.knobs.prepare(job.knobs)
        self._job = job
        typed = self._typed_first | (_nodes(job) - self._of_file)
        self._permissions = replace(self._permissions, destroy_data=destroy_data, typed=typed)
        self.memory.forget_turns()

    @property
    def has_load(self) -> bool:
        """Whether there is a load that another job would replace: armed, running, or on its way there or back."""
        return self.status.state in BUSY_STATES | LIVE_STATES

    def read_from(self, targets: tuple[TargetSpec, ...]) -> None:
        """Replace the job by one that only reads these targets; nothing is opened.

        Permissions to write to them end, and that to destroy data: with them they would be opened for writing.

        Raises:
            UsageError: a load runs or is armed, or a sweep uses it.
        """
        self.require_free()
        if self.has_load:
            raise UsageError(f"the load is {self.status.state}: stop it first")
        self.edit(read_only_job(self.job, targets), destroy_data=False)
        nodes, before = _nodes(self.job), self._permissions
        self._typed -= nodes
        given = {path: identity for path, identity in before.given.items() if path not in nodes}
        self._permissions = replace(before, allow_write=before.allow_write - nodes, given=given)
        self.taken += 1

    def unconfirmed(self, knobs: Knobs) -> tuple[str, ...]:
        """Paths these knobs would write to whose names were not typed yet; scratch files need no confirmation."""
        if knobs.read_pct >= 100:
            return ()
        paths = (node for target in self._job.targets for node in target.nodes)
        return tuple(dict.fromkeys(path for path in paths if path not in self._typed))

    def question(self, path: str) -> WriteQuestion:
        """Look at a target that the load wants to write; blocks as long as it does.

        Permissions that were given for another device of a name are forgotten first.
        """
        from engine.guard.given import changed, identity_at  # noqa: PLC0415 (slow to import)

        forgotten = changed(self._permissions)
        if forgotten:
            self._forget()
            forgotten = f"{forgotten}. {_FORGOTTEN}."
        # Before the look at it: what takes the name meanwhile is refused when it is armed.
        identity = identity_at(path)
        if self.is_turned_live():
            # The guard let it be opened, and is asked again before the first write; our own claim is no use by others.
            return WriteQuestion(path, "", "", identity, forgotten)
        (answer,) = self.guard.answers(replace(self.job, targets=(TargetSpec(path),)), self._permissions)
        found = f"{answer.name} {answer.holds}." if answer.holds else ""
        refusal = answer.reading or answer.writing
        return WriteQuestion(path, found, refusal, identity, forgotten)

    def confirm(self, question: WriteQuestion) -> None:
        """Allow writing to what the operator was shown and whose name was typed."""
        self._typed.add(question.path)
        allowed = self._permissions
        self._permissions = replace(
            allowed,
            allow_write=allowed.allow_write | {question.path},
            given={**allowed.given, question.path: question.identity},
        )

    def _forget(self) -> None:
        """End all permissions to write and to destroy data."""
        self._typed.clear()
        self._permissions = replace(self._permissions, allow_write=frozenset(), destroy_data=False, given={})
        self.taken += 1

    def permit_destroying(self) -> None:
        """Permit overwriting filesystems and other data, after the operator's typed confirmation."""
        self._permissions = replace(self._permissions, destroy_data=True)

    def arm(self) -> None:
        """Check and prepare the targets; blocks.

        Raises:
            RefusedError: a target would be written without its name typed, or the guard refuses it.
            UsageError: a sweep uses the load.
        """
        self.require_free()
        self.arm_held()

    def take_job(self, job: JobSpec) -> None:
        """Take the job that a sweep was measured with, while no load runs.

        Raises:
            UsageError: a sweep uses the load.
        """
        self.require_free()
        self.take_held(job)

    def take_held(self, job: JobSpec) -> None:
        """Take a job for whoever holds the load; no load runs."""
        self.control.knobs.prepare(job.knobs)
        self._job = job
        self._of_file |= _nodes(job) - self._permissions.typed - self._typed_first
        self.memory.forget_turns()
        self.taken += 1

    def arm_held(self) -> None:
        """Arm for whoever holds the load; blocks."""
        job = self.job
        self._require_typed(job.knobs)
        self._armed = (job, self._permissions)
        self.recent.add(format_target(target) for target in job.targets if target.path is not None)
        try:
            self.control.arm(job, self._permissions)
        except OtherTargetError as other:
            self._forget()
            raise RefusedError(f"{other}. {_FORGOTTEN}") from None

    def start(self) -> None:
        """Start, arming first unless the current job is armed; blocks."""
        self.require_free()
        if self.status.state is not LoadState.ARMED or not self._is_armed():
            self.arm()
        if self.status.state is LoadState.ARMED:
            self.control.start()

    def stop(self) -> None:
        """Stop, disarm or cancel preparation; blocks until all I/Os completed."""
        self.control.stop()

    def turn(self, knobs: Knobs, done: Done) -> None:
        """Turn the knobs of the running load, or of the job that will run; never blocks.

        `done` is called when a load has applied or refused them: with the reason of the refusal, or an empty text.

        Raises:
            LunscopeError: they are invalid; the old ones stay in force.
        """
        self.require_free()
        state = self.status.state
        if state in BUSY_STATES:
            raise UsageError(f"wait: the load is {state}")
        if self.is_turned_live():
            self._require_typed(knobs)
            self.control.request_turn(knobs, done)
        else:
            self.control.knobs.prepare(knobs)
            done("")

    def is_turned_live(self) -> bool:
        """Whether a turn changes a load; otherwise it changes the job for the next start."""
        state = self.status.state
        return state is LoadState.RUNNING or (state is LoadState.ARMED and self._is_armed())

    def needs_restart(self, knobs: Knobs) -> bool:
        """Whether these knobs write and the running load was armed for reading only."""
        if self.status.state is not LoadState.RUNNING or knobs.read_pct >= 100 or self._armed is None:
            return False
        return not _nodes(self._job) <= self._armed[1].allow_write

    def _is_armed(self) -> bool:
        """Whether this job is armed with these permissions; knobs can be turned while armed."""
        if self._armed is None:
            return False
        job, permissions = self._armed
        return replace(job, knobs=self._job.knobs) == self._job and permissions == self._permissions

    def _require_typed(self, knobs: Knobs) -> None:
        missing = self.unconfirmed(knobs)
        if missing:
            raise RefusedError(f"{missing[0]}: its name must be typed before anything is written to it")


def _nodes(job: JobSpec) -> frozenset[str]:
    return frozenset(node for target in job.targets for node in target.nodes)


def read_only_job(job: JobSpec, targets: tuple[TargetSpec, ...]) -> JobSpec:
    """Make a job that only reads these targets, all of each, with the order, engine, arrivals and knobs of another one.

    What was meant for the targets of that one is left out: size, offset, mirror, verification, ends by bytes.
    """
    knobs = replace(
        job.knobs,
        read_pct=100.0,
        stripe_width=len(targets),
        write_blocks=None,
        write_distribution=None,
        fsync_every=None,
    )
    return JobSpec(
        targets=targets,
        knobs=knobs,
        access=job.access,
        backend=job.backend,
        streams=job.streams,
        runtime_s=job.runtime_s,
        give_up_s=job.give_up_s,
        seed=job.seed,
        arrival=job.arrival,
        name=job.name,
    )
