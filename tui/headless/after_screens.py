"""After the screens: the summary of the last load, and the exit even if storage does not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.backend.outstanding import given_up_text
from engine.errors import LunscopeError
from engine.running.control import LoadControl
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.options.watching import recording_exit

if TYPE_CHECKING:
    from collectors.sources.recorder import RecordingSource
    from engine.sweep.runner import SweepResult


def sum_up(control: LoadControl, recording: RecordingSource | None, code: int) -> int:
    """Print the result and the outstanding I/Os of the last load; returns the exit code.

    With I/Os outstanding this ends the process instead, as a normal exit would wait for them.
    """
    result = control.result()
    if result is not None:
        from tui.headless.runs import print_result  # noqa: PLC0415 (slow to import; most leave without a load)

        print_result(result)
        code = code or int(result.is_damaged or result.ended_in_stall or result.missed_steady)
    return _leave_or_return(control, recording, code)


def sum_up_sweep(
    swept: SweepResult | None,
    failure: LunscopeError | None,
    control: LoadControl,
    recording: RecordingSource | None,
    code: int,
) -> int:
    """Print what a sweep says, and the outstanding I/Os of its load; returns the exit code as `sum_up`."""
    if failure is not None:
        click.echo(f"lunscope: {safe_text(str(failure))}", err=True)
        code = code or failure.exit_code
    if swept is not None:
        from collectors.advice.finding import finding_lines  # noqa: PLC0415 (as above)
        from collectors.advice.of_sweep import findings_of_sweep  # noqa: PLC0415
        from collectors.advice.point_text import point_lines  # noqa: PLC0415
        from engine.sweep.text import sweep_lines  # noqa: PLC0415

        for line in (*sweep_lines(swept), *point_lines(swept), *finding_lines(findings_of_sweep(swept))):
            click.echo(safe_text(line))
        code = code or int(not swept.is_complete)
    result = control.result()
    if result is not None:
        code = code or int(bool(result.failed_ios or result.ended_in_stall))
    return _leave_or_return(control, recording, code)


def _leave_or_return(control: LoadControl, recording: RecordingSource | None, code: int) -> int:
    code, result = recording_exit(recording, code), control.result()
    if control.outstanding:
        if result is None or not result.outstanding:
            click.echo(f"lunscope: {given_up_text(control.outstanding)}", err=True)
        leave(code or 1)
    return code
