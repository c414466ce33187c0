"""`lunscope agent`: the part of `lunscope fleet` that runs on each host."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from collectors.fleet.agent import Agent, AgentSettings
from engine.errors import UsageError
from engine.text import safe_text
from tui.headless.leaving import leave
from tui.options.reading import root_options, tier_option


@click.command(short_help="the part of `lunscope fleet` on each host")
@click.option("--stdio", is_flag=True, help="Speak with the controller on standard input and output.")
@tier_option
@root_options
def command(*, stdio: bool, tier: str, procfs: Path, sysfs: Path) -> int:
    """Sample this host and drive its load for the `lunscope fleet` that started it, over ssh.

    Nothing listens. I/O is issued only while the controller is heard: at the end of input, or before 3 s of silence
    have passed, the load is stopped, its devices are closed, and its recording is kept in the state folder.

    Exits 0 when it was dismissed, 3 when the controller has gone, 1 where this host cannot be sampled.
    """
    if not stdio:
        raise UsageError("agent: give --stdio; `lunscope fleet` starts it on every host")
    output = os.dup(1)
    os.dup2(2, 1)  # whatever prints must not end up between frames
    code = Agent(AgentSettings(procfs, sysfs, tier), 0, output, _log).run()
    sys.stderr.flush()
    leave(code)


def _log(text: str) -> None:
    click.echo(f"lunscope agent: {safe_text(text)}", err=True)
