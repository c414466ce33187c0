"""The screens of `lunscope watch` and `lunscope run`, from their source to the summary of what was seen."""

from __future__ import annotations

from engine.events import Event
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from tui.app.start import start
from tui.app_input import AppInput
from tui.headless.after_screens import sum_up
from tui.headless.metered import metered
from tui.kept import recent_targets
from tui.load.load_controller import LoadController
from tui.options.watching import Watching, open_source
from tui.sweep.series import SweepSeries


def watch_host(
    watching: Watching,
    job: JobSpec | None = None,
    permissions: Permissions | None = None,
    *,
    theme: str | None = None,
    mouse: bool = True,
) -> int:
    """Show this host, with a job that starts at once if there is one, until the screens are left.

    Returns the exit code.
    """
    control = LoadControl()
    source, recording = open_source(watching, control)
    sweeps, events = SweepSeries(), list[Event]()
    code = start(
        AppInput(
            metered(source, watching.metrics_file, lambda: control.status.knobs, on_screen=True),
            LoadController(control, job or JobSpec(), permissions or Permissions(), recent=recent_targets()),
            recording,
            autostart=job is not None,
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
