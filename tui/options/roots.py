"""Options of every verb that reads the kernel."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Verb = TypeVar("Verb", bound=Callable[..., Any])


def root_options(verb: Verb) -> Verb:
    """Add `--procfs` and `--sysfs`: where the host's trees are mounted, for use inside a container."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    verb = click.option("--sysfs", type=folder, default="/sys", show_default=True, help="Where sysfs is mounted.")(verb)
    return click.option("--procfs", type=folder, default="/proc", show_default=True, help="Where procfs is mounted.")(
        verb
    )
