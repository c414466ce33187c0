"""The options of verbs that drive a load: recording, interval, scratch folder, metrics in a file for node_exporter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from engine.config import SCRATCH_ENV
from tui.options.numbers import DECIMAL

_Command = TypeVar("_Command", bound=Callable[..., Any])
METRICS_FILE = "--metrics-textfile"

_OPTIONS = (
    click.option(
        "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Record the session."
    ),
    click.option("--overwrite", is_flag=True, help="Replace the file that --record names if it is a session."),
    click.option(
        "--interval", type=DECIMAL, default=1.0, show_default=True, metavar="S", help="Seconds between samples."
    ),
    click.option(
        "--scratch-dir",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help=f"Folder for scratch files, also ${SCRATCH_ENV}. [lunscope's folder in the user's cache]",
    ),
)


def session_options(command: _Command) -> _Command:
    """Add those of the session to a command, which gets `record`, `overwrite`, `interval` and `scratch_dir`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def load_metrics_option(command: _Command) -> _Command:
    """Add METRICS_FILE to a command, which gets `metrics_textfile` as keyword argument."""
    return click.option(
        METRICS_FILE,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Replace FILE (*.prom) at every sample with the metrics of the load, for node_exporter.",
    )(command)
