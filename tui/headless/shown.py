"""Results on standard output: the sections of their documents, as wide as the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

import click

from collectors.reports.documents.content import Section
from collectors.reports.formats.text import WIDTH, section_lines

_MOST = 160
"""Columns beyond which lines are hard to follow."""


def print_sections(sections: Iterable[Section]) -> None:
    """Print sections in the columns of the terminal; in 80 where there is none."""
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    for line in section_lines(sections, min(max(columns, WIDTH), _MOST)):
        click.echo(line)
