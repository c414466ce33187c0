"""After the screens: the end of the load, its summary, and the exit even if storage does not respond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from engine.backend.outstanding import given_up_text
from engine.background_call import BackgroundCall
from engine.running.control import LoadControl
from tui.headless.leaving import leave
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines
from tui.options.watching import recording_exit

if TYPE_CHECKING:
    from collectors.sources.recorder import RecordingSource


_LOOK_S = 0.05


def end_load(control: LoadControl) -> int:
    """Stop the load, report outstanding I/Os, and give them up at a signal; in the main thread.

    Returns:
        128 + the number of the signal that gave it up; 0 if none came.
    """
    lines = WaitLines(lambda line: click.echo(f"lunscope: {line} (Ctrl-C gives up)", err=True))
    with EndingSignals() as signals:
        stopping = BackgroundCall(control.close, "lunscope-stop")
        while not stopping.done.wait(_LOOK_S):
            lines.show(control.status.outstanding)
            if signals.count:
                control.abandon()
        signal = signals.wait(0)
    stopping.result()
    return 0 if signal is None else 128 + signal


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
