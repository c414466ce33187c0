"""The end of a load after the screens: progress is reported while it waits."""

from __future__ import annotations

import click

from engine.background_call import BackgroundCall
from engine.running.control import LoadControl
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines

_POLL_S = 0.05


def end_load(control: LoadControl) -> int:
    """Stop the load, report outstanding I/Os, and give them up at a signal; in the main thread.

    Returns:
        128 + the number of the signal that gave it up; 0 if none came.
    """
    lines = WaitLines(lambda line: click.echo(f"lunscope: {line} (Ctrl-C gives up)", err=True))
    with EndingSignals() as signals:
        stopping = BackgroundCall(control.close, "lunscope-stop")
        while not stopping.done.wait(_POLL_S):
            lines.show(control.status.outstanding)
            if signals.count:
                control.abandon()
        signal = signals.wait(0)
    stopping.result()
    return 0 if signal is None else 128 + signal
