"""`lunscope sweep`: says what is measured, preconditions the targets, opens the files, and measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.job.spec import JobSpec, Permissions
from engine.study.order import Study, StudyOrder
from engine.study.trial_file import KeptPlan, Trial, TrialFile
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import SweepRunner
from tui.headless.leaving import go_on_in_child
from tui.headless.measuring import measure_order
from tui.headless.precondition import precondition_code, preconditioning
from tui.options.watching import Watching
from tui.process.standard_streams import say


class SweepOutput(Struct, frozen=True):
    """Where the results go."""

    watching: Watching
    as_json: bool
    trials: Path | None
    warnings: Sequence[str]
    """Warnings of the job file."""
    precondition: bool = False
    """Whether targets are preconditioned before anything is measured."""
    on_screen: Callable[[StudyOrder, Watching], int] | None = None
    """Measures on the screens; None: without."""


def begin(
    armed: JobSpec,
    words: Iterable[str],
    permissions: Permissions,
    output: SweepOutput,
    ordered: Callable[[ExitStack], StudyOrder],
) -> int:
    """Measure what is ordered, once it was said and the targets are preconditioned; returns the exit code.

    Args:
        armed: the job whose targets are preconditioned.
        words: what is measured, a line each.
        permissions: writes that are allowed.
        output: where the results go.
        ordered: opens the files, which end with the stack, and makes the order.

    Raises:
        LunscopeError: targets cannot be preconditioned, or a file cannot be used.
    """
    first = preconditioning(armed, permissions, wanted=output.precondition)
    for line in (*output.warnings, *words):
        say(line)
    go_on_in_child()
    code = precondition_code(first)
    if code:
        return code
    with ExitStack() as files:
        order = ordered(files)
        if output.on_screen is not None:
            return output.on_screen(order, output.watching)
        return measure_order(order, output.watching, as_json=output.as_json)


def opened(files: ExitStack, path: Path | None, plan: KeptPlan[Trial], trial: str) -> TrialFile[Trial] | None:
    """Open the file of a plan, and say how many trials it has; None where nothing is kept.

    Raises:
        LunscopeError: it is of something else, damaged, or cannot be read.
    """
    if path is None:
        return None
    file = files.enter_context(TrialFile(path, plan))
    if file.done:
        say(f"goes on after {len(file.done)} {trial}{'s' if file.done[1:] else ''} in {path}")
    return file


def run_sweep(
    plan: SweepPlan, permissions: Permissions, output: SweepOutput, whole: Callable[..., Any] | None = None
) -> int:
    """Measure a plan until it is done or a signal comes, and print what it says; returns the exit code.

    Args:
        plan: what is measured.
        permissions: writes that are allowed.
        output: where the results go.
        whole: makes what is said of the result; None: it speaks for itself.

    Raises:
        LunscopeError: as of `begin`.
    """

    def ordered(files: ExitStack) -> StudyOrder:
        study = Study(plan, SweepRunner, opened(files, output.trials, plan, "measurement"))
        return StudyOrder(study, permissions, whole=whole)

    return begin(plan.with_all_targets, (plan.words,), permissions, output, ordered)
