"""What follows the screens: the summary of the last load, and leaving though its storage does not answer."""

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
    """Print what the last load measured and what of it never came back; returns the exit code.

    Where something is outstanding this ends the process instead: its exit would wait for it.
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
