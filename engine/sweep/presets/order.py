"""The parts of a preset as studies one after the other, with a command of the operator between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.job.spec import Permissions
from engine.study.order import NextStudy, Results, Study, StudyOrder
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.outcome import PresetOutcome
from engine.sweep.presets.plans import PresetPlan
from engine.sweep.runner import SweepRunner


def preset_order(plan: PresetPlan, permissions: Permissions, files: PresetFiles, commands: Sequence[str]) -> StudyOrder:
    """Measure all parts; each command runs before one of them, from the second on, unless that was begun already.

    Raises:
        LunscopeError: a file cannot be used.
    """
    count = len(plan.parts)

    def study(index: int) -> Study:
        part, swept = plan.parts[index]
        name = plan.preset.name
        words = f"{name}: part {index + 1} of {count}, {part.name}" if count > 1 else name
        return Study(swept, SweepRunner, files.file(index), words)

    def made(index: int) -> Callable[[Results], Study]:
        return lambda _results: study(index)

    def following(index: int) -> NextStudy:
        command = commands[index - 1] if index <= len(commands) and not files.has_begun(index) else ""
        return NextStudy(made(index), command)

    def whole(results: Results, targets: tuple[str, ...]) -> PresetOutcome:
        return PresetOutcome(plan, tuple(results), targets)

    return StudyOrder(study(0), permissions, tuple(map(following, range(1, count))), whole)
