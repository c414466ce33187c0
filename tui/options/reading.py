"""Settings about reading, for verbs without a screen."""

from __future__ import annotations

import click

from collectors.sampling.settings import ReadingSettings, load_reading_settings
from engine.text import safe_text


def reading_settings() -> ReadingSettings:
    """Read them, and report invalid ones on stderr."""
    settings = load_reading_settings()
    for problem in settings.problems:
        click.echo(f"lunscope: {safe_text(problem)}", err=True)
    return settings
