"""`lunscope watch` from its source to the summary of what was seen."""

from __future__ import annotations

from engine.events import Event
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from tui.app.start import start
from tui.app_input import AppInput
from tui.headless.after_screens import sum_up
from tui.kept import recent_targets
from tui.load.load_controller import LoadController
from tui.options.watching import Watching, open_source
from tui.sweep.series import SweepSeries


def watch_host(watching: Watching, theme: str | None, *, mouse: bool) -> int:
    """Show this host until the screens are left; returns the exit code."""
    control = LoadControl()
    source, recording = open_source(watching, control)
    sweeps, events = SweepSeries(), list[Event]()
    code = start(
        AppInput(
            source,
            LoadController(control, JobSpec(), Permissions(), recent=recent_targets()),
            recording,
            sweeps=sweeps,
            alert_service=watching.alerts,
            is_summed_up=True,
            tune_root=watching.sysfs,
        ),
        theme=theme,
        mouse=mouse,
        keep_events=events.extend,
    )
    return sum_up(control, recording, code, sweeps, events)
