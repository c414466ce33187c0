"""What is measured one after the other over one load: studies, and what happens between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field

from engine.job.knobs import Knobs
from engine.job.spec import JobSpec, Permissions
from engine.study.events import Note
from engine.study.load import Load, PointWatch
from engine.study.runner import StudyRunner
from engine.study.trial_file import KeptPlan, TrialFile

Keep: TypeAlias = Callable[[int, Any], None]
"""Takes each trial once it is measured, with the index of its curve."""
Results: TypeAlias = Sequence[Any]
"""Results of the studies that began, in their order."""


class StudyPlan(KeptPlan[Any], Protocol):
    """What a study is to measure."""

    @property
    def armed(self) -> JobSpec:
        """The job as it is armed."""

    @property
    def first(self) -> Knobs:
        """Knobs of the first trial."""

    @property
    def least_read_pct(self) -> float:
        """The lowest share of reads of all that is measured: below 100 it writes."""

    @property
    def words(self) -> str:
        """How much it is, in one line."""


class Study(Struct, frozen=True):
    """A plan, what measures it, and where its trials are kept."""

    plan: StudyPlan
    runner: Callable[..., StudyRunner[Any, Any, Any]]
    """Makes the runner, such as its class."""
    trials: TrialFile[Any] | None = None
    """Its file, open; None where nothing is kept."""
    part: str = ""
    """Words that say which of several measurements it is."""

    def over(self, load: Load, keep: Keep, note: Note, watch: PointWatch) -> StudyRunner[Any, Any, Any]:
        """Make what measures it over a load; trials of its file are not measured again."""
        done = () if self.trials is None else tuple(self.trials.done)
        return self.runner(self.plan, load, keep, done, note=note, watch=watch)


class NextStudy(Struct, frozen=True):
    """A study that follows others."""

    make: Callable[[Results], Study]
    """Makes it of the results before, once its turn has come; may raise a LunscopeError."""
    command: str = ""
    """A shell command that runs before, while no load does."""


class StudyOrder(Struct, frozen=True):
    """Studies that were asked for together; each begins where the one before is complete."""

    first: Study
    permissions: Permissions = field(default_factory=Permissions)
    following: tuple[NextStudy, ...] = ()
    whole: Callable[[Results, tuple[str, ...]], Any] | None = None
    """Makes of the results, and the names of the targets, what they are parts of; None where each is for itself."""

    def answered(self, results: Results, targets: tuple[str, ...]) -> Results:
        """Return what is said of the results; None stands for those that are missing at the end."""
        if self.whole is not None:
            return [self.whole(results, targets)] if results else []
        return [*results, *[None] * (1 + len(self.following) - len(results))]

    def is_complete(self, results: Results) -> bool:
        """Whether all was measured."""
        return len(results) == 1 + len(self.following) and all(result.is_complete for result in results)
