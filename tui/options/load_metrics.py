"""`--metrics-textfile` of the verbs that drive a load: its metrics in a file for node_exporter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

METRICS_FILE = "--metrics-textfile"
_Command = TypeVar("_Command", bound=Callable[..., Any])


def load_metrics_option(command: _Command) -> _Command:
    """Add the option; the command gets `metrics_textfile`."""
    return click.option(
        METRICS_FILE,
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Replace FILE (*.prom) at every sample with the metrics of the load, for node_exporter.",
    )(command)
