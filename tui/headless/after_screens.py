"""After the screens: the summary of the last load, and the exit even if storage does not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.backend.outstanding import given_up_text
from engine.running.control import LoadControl
from tui.headless.leaving import leave
from tui.options.watching import recording_exit

if TYPE_CHECKING:
    from collectors.sources.recorder import RecordingSource


def sum_up(control: LoadControl, recording: RecordingSource | None, code: int) -> int:
    """Print the result and the outstanding I/Os of the last load; returns the exit code.

    With I/Os outstanding this ends the process instead, as a normal exit would wait for them.
    """
    result = control.result()
    if result is not None:
        from tui.headless.runs import print_result  # noqa: PLC0415 (slow to import; most leave without a load)

        print_result(result, as_json=False)
        code = code or int(result.is_damaged or result.ended_in_stall)
    code = recording_exit(recording, code)
    if control.outstanding:
        if result is None or not result.outstanding:
            click.echo(f"lunscope: {given_up_text(control.outstanding)}", err=True)
        leave(code or 1)
    return code
