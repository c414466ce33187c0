"""Sweeps, searches and presets on the screens, begun by the verb `sweep`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.sweep.presets.files import PresetFiles
from engine.sweep.presets.plans import PresetPlan
from tui.headless.after_screens import sum_up_series
from tui.headless.isolation import IsolationOrder
from tui.headless.rate_search import RateOrder
from tui.headless.sweep import SweepOrder
from tui.options.watching import Watching, open_source

if TYPE_CHECKING:
    from tui.load.load_controller import LoadController
    from tui.sweep.series import SessionGroup


def show_sweep(order: SweepOrder, watching: Watching) -> int:
    """Measure a sweep on its screen; returns the exit code."""

    def group(controller: LoadController) -> SessionGroup:
        from tui.sweep.series import group_of  # noqa: PLC0415 (the screen only)
        from tui.sweep.session import SweepSession  # noqa: PLC0415 (the screen only)

        return group_of(SweepSession(order.plan, controller, order.trials))

    return _show(order.plan.armed, order.permissions, watching, group)


def show_rates(order: RateOrder, watching: Watching) -> int:
    """Measure the closed loops, if any, and search the rate on the screen; returns the exit code."""

    def group(controller: LoadController) -> SessionGroup:
        from tui.sweep.rate_session import RateSession  # noqa: PLC0415 (the screen only)
        from tui.sweep.series import SessionStep, group_of  # noqa: PLC0415 (the screen only)
        from tui.sweep.session import SweepSession  # noqa: PLC0415 (the screen only)

        if closed is None:
            rates = order.rates(None)
            return group_of(RateSession(rates.plan, controller, rates.trials))
        first = SweepSession(closed.plan, controller, closed.trials, part="closed loop, 1 of 2")

        def follow() -> RateSession:
            rates = order.rates(first.result)
            return RateSession(rates.plan, controller, rates.trials, part="open loop, 2 of 2")

        return group_of(first, [SessionStep(follow)])

    closed = order.closed
    armed = order.rates(None).plan.armed if closed is None else closed.plan.armed
    return _show(armed, order.permissions, watching, group)


def show_preset(
    plan: PresetPlan, files: PresetFiles, permissions: Permissions, watching: Watching, *, command: str
) -> int:
    """Measure the parts of a preset on the screen, with the command before its last part; returns the exit code."""

    def group(controller: LoadController) -> SessionGroup:
        from tui.sweep.preset_group import preset_group  # noqa: PLC0415 (the screen only)

        return preset_group(plan, controller, command, files)

    return _show(plan.parts[0][1].armed, permissions, watching, group)


def show_isolation(order: IsolationOrder, watching: Watching) -> int:
    """Measure a victim beside its aggressor on the screen; returns the exit code."""

    def group(controller: LoadController) -> SessionGroup:
        from tui.sweep.isolation_session import IsolationSession  # noqa: PLC0415 (the screen only)
        from tui.sweep.series import group_of  # noqa: PLC0415 (the screen only)

        return group_of(IsolationSession(order.plan, controller, order.hierarchy, watching.sysfs, kept=order.kept))

    return _show(order.plan.victim, order.permissions, watching, group)


def _show(
    job: JobSpec, permissions: Permissions, watching: Watching, group: Callable[[LoadController], SessionGroup]
) -> int:
    from tui.app.start import start  # noqa: PLC0415 (as textual)
    from tui.app_input import AppInput  # noqa: PLC0415 (the screen only)
    from tui.load.load_controller import LoadController  # noqa: PLC0415 (the screen only)
    from tui.sweep.series import SweepSeries  # noqa: PLC0415 (the screen only)

    control = LoadControl()
    source, recording = open_source(watching, control)
    controller = LoadController(control, job, permissions, sysfs=watching.sysfs)
    series = SweepSeries(group(controller))
    code = start(
        AppInput(
            source,
            controller,
            recording,
            sweeps=series,
            alert_service=watching.alerts,
            is_summed_up=True,
            tune_root=watching.sysfs,
        )
    )
    return sum_up_series(series, control, recording, code, is_measured_for=True)
