"""The --tier option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from collectors.sampling.settings import TIERS

_Command = TypeVar("_Command", bound=Callable[..., Any])

PATIENCE_S = 3.0
"""How long a verb without a screen waits for exact counters before its first sample."""


def tier_option(command: _Command) -> _Command:
    """Add --tier to a command, which gets it as a keyword argument."""
    option = click.option(
        "--tier",
        type=click.Choice(TIERS),
        default="auto",
        show_default=True,
        help="How figures are obtained; auto: the best available; any other fails if unavailable.",
    )
    return option(command)
