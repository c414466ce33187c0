"""Options and settings of verbs that read the kernel: its roots, aliases and slow counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from collectors.sampling.settings import ReadingSettings, load_reading_settings
from engine.text import safe_text

Verb = TypeVar("Verb", bound=Callable[..., Any])


def root_options(verb: Verb) -> Verb:
    """Add `--procfs` and `--sysfs`: where the host's trees are mounted, for use inside a container."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    verb = click.option("--sysfs", type=folder, default="/sys", show_default=True, help="Where sysfs is mounted.")(verb)
    return click.option("--procfs", type=folder, default="/proc", show_default=True, help="Where procfs is mounted.")(
        verb
    )


def reading_settings() -> ReadingSettings:
    """Read them, and report invalid ones on stderr."""
    settings = load_reading_settings()
    for problem in settings.problems:
        click.echo(f"lunscope: {safe_text(problem)}", err=True)
    return settings
