"""The command line: one verb per file in tui.commands, imported only when it is called."""

from __future__ import annotations

import importlib

import click

VERBS: dict[str, str] = {"watch": "this host live on the screen", "replay": "a recording on the screen"}
"""Verb to its one-line help; the module of the same name in tui.commands has the rest."""


class LazyVerbs(click.Group):
    """Imports a verb when it is asked for, so that `lunscope record` never loads textual."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """All verbs, in the order of the manual."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """One verb, or None if there is no such."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"tui.commands.{cmd_name}").command
        return command


@click.command(cls=LazyVerbs)
def cli() -> None:
    """Lunscope: an oscilloscope for storage."""
