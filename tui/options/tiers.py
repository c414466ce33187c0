"""The option that says how figures are obtained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from collectors.sources.live import TIERS

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
        help="How figures are obtained; auto takes the best there is, any other fails where it is not to be had.",
    )
    return option(command)
