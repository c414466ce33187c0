"""Options and settings of verbs that read the kernel: its roots, the tier, aliases and slow counters."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from collectors.sampling.reading_settings import (
    LONGEST_ATTACH_S,
    TIERS,
    TYPES_VARIABLE,
    ReadingSettings,
    load_reading_settings,
)
from engine.replacing import replace
from tui.process.standard_streams import say

Verb = TypeVar("Verb", bound=Callable[..., Any])
_TYPES_NAMED_BY = "lunscope.types_named_by"
_MOST_COST = "lunscope.most_cost_pct"
PATIENCE_S = 3.0
"""How long a verb without a screen waits for exact counters before its first sample, unless they are required."""


def longest_first_sample_s(tier: str) -> float:
    """How long the first sample of a verb without a screen may take: it waits for exact counters."""
    return (LONGEST_ATTACH_S if tier == "exact" else PATIENCE_S) + 1.0


def root_options(verb: Verb) -> Verb:
    """Add `--procfs` and `--sysfs`: where the host's trees are mounted, for use inside a container."""
    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    verb = click.option("--sysfs", type=folder, default="/sys", show_default=True, help="Where sysfs is mounted.")(verb)
    return click.option("--procfs", type=folder, default="/proc", show_default=True, help="Where procfs is mounted.")(
        verb
    )


def tier_option(verb: Verb) -> Verb:
    """Add --tier to a verb, which gets it as a keyword argument, and --btf, which the exact tier may need."""
    option = click.option(
        "--tier",
        type=click.Choice(TIERS),
        default="auto",
        show_default=True,
        help="How figures are obtained; auto: the best available; any other fails if unavailable.",
    )
    return option(btf_option(verb))


def btf_option(verb: Verb) -> Verb:
    """Add --btf to a verb; it, the variable or the setting is where the core looks for types that the kernel lacks."""

    def keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
        named = value or load_reading_settings().btf
        if named:
            os.environ[TYPES_VARIABLE] = named
        is_option = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        context.meta[_TYPES_NAMED_BY] = "--btf" if is_option else TYPES_VARIABLE if value else "[exact_time] btf"

    option = click.option(
        "--btf",
        type=click.Path(exists=True, dir_okay=False),
        envvar=TYPES_VARIABLE,
        show_envvar=True,
        metavar="FILE",
        expose_value=False,
        callback=keep,
        help="Types of exactly this kernel, for exact time where it has none of its own.",
    )
    return option(verb)


def types_named_by() -> str:
    """Return which option, variable or setting of the running verb names the file with the kernel's types, if any."""
    return str(click.get_current_context().meta[_TYPES_NAMED_BY])


def cost_option(verb: Verb) -> Verb:
    """Add --most-cost to a verb, whose settings of reading then have it."""

    def keep(context: click.Context, _option: click.Parameter, value: float | None) -> None:
        context.meta[_MOST_COST] = value

    option = click.option(
        "--most-cost",
        type=click.FloatRange(0, 100),
        metavar="PCT",
        expose_value=False,
        callback=keep,
        help="Stop exact time where it takes more of a CPU, and of the CPU time used; 0: never.  [default: 5]",
    )
    return option(verb)


def settings_with_options() -> ReadingSettings:
    """Read the settings, and put what the options of the running verb say in their place."""
    context = click.get_current_context(silent=True)
    asked = None if context is None else context.meta.get(_MOST_COST)
    settings = load_reading_settings()
    return settings if asked is None else replace(settings, most_cost_pct=asked)


def reading_settings() -> ReadingSettings:
    """Read them, and report invalid ones on stderr."""
    settings = settings_with_options()
    for problem in settings.problems:
        say(problem)
    return settings
