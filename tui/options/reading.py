"""Options and settings of verbs that read the kernel: its roots, the tier, aliases and slow counters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from collectors.sampling.settings import TIERS, ReadingSettings, load_reading_settings
from engine.text import safe_text

Verb = TypeVar("Verb", bound=Callable[..., Any])
PATIENCE_S = 3.0
"""How long a verb without a screen waits for exact counters before its first sample."""


def root_options(verb: Verb) -> Verb:
    """Add `--procfs` and `--sysfs`: where the host's trees are mounted, for use inside a container."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    verb = click.option("--sysfs", type=folder, default="/sys", show_default=True, help="Where sysfs is mounted.")(verb)
    return click.option("--procfs", type=folder, default="/proc", show_default=True, help="Where procfs is mounted.")(
        verb
    )


def tier_option(verb: Verb) -> Verb:
    """Add --tier to a verb, which gets it as a keyword argument."""
    option = click.option(
        "--tier",
        type=click.Choice(TIERS),
        default="auto",
        show_default=True,
        help="How figures are obtained; auto: the best available; any other fails if unavailable.",
    )
    return option(verb)


def reading_settings() -> ReadingSettings:
    """Read them, and report invalid ones on stderr."""
    settings = load_reading_settings()
    for problem in settings.problems:
        click.echo(f"lunscope: {safe_text(problem)}", err=True)
    return settings
