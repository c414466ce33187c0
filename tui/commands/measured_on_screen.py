"""Studies on the screens, begun by the verb `sweep`."""

from __future__ import annotations

from engine.running.control import LoadControl
from engine.study.order import StudyOrder
from tui.headless.after_screens import sum_up_series
from tui.options.watching import Watching, open_source


def show_order(order: StudyOrder, watching: Watching) -> int:
    """Measure studies on their screen; returns the exit code."""
    from tui.app.start import start  # noqa: PLC0415 (as textual)
    from tui.app_input import AppInput  # noqa: PLC0415 (the screen only)
    from tui.load.load_controller import LoadController  # noqa: PLC0415 (the screen only)
    from tui.sweep.series import SessionGroup, SweepSeries  # noqa: PLC0415 (the screen only)

    control = LoadControl()
    source, recording = open_source(watching, control)
    controller = LoadController(control, order.first.plan.armed, order.permissions, sysfs=watching.sysfs)
    series = SweepSeries(SessionGroup.of(order, controller))
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
