"""The end of a load after the screens were left: nobody waits for it in silence."""

from __future__ import annotations

import click

from engine.background_call import BackgroundCall
from engine.running.control import LoadControl
from tui.headless.signals import EndingSignals
from tui.headless.wait_lines import WaitLines

_LOOK_S = 0.05


def end_load(control: LoadControl) -> int:
    """Stop whatever the load does, name what does not come back, and have a signal give it up; in the main thread.

    Returns:
        The exit code that says which signal gave it up, 128 + its number; 0 if none came.
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
