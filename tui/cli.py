"""The command line: one verb per file in tui.commands, imported only when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from engine.errors import LunscopeError
from engine.text import safe_text
from tui.loading import loading

VERBS: dict[str, str] = {
    "watch": "this host's disks on the screen, live",
    "run": "watch this host and drive a load beside it",
    "verify": "find damaged blocks after a load with --verify",
    "report": "disks, paths and HBA ports as text or JSON lines, like sar",
    "scan": "the device graph: HBA ports, paths, LUNs, what stands on them",
    "record": "this host into a session file, without a screen",
    "replay": "a recording on the same screens",
    "export": "the figures of a recording as csv or jsonl",
    "doctor": "what works on this host, and what would lift it",
    "probe": "exact time for users who may not trace: the privileged helper",
}
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
        with loading():
            command: click.Command = importlib.import_module(f"tui.commands.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing one."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=LazyVerbs, invoke_without_command=True, subcommand_metavar="[VERB] [ARGS]...")
@click.version_option(package_name="lunscope")
@click.pass_context
def cli(context: click.Context) -> int | None:
    """Lunscope: an oscilloscope for storage. Without a verb it watches this host."""
    if context.invoked_subcommand is None:
        watch = cli.get_command(context, "watch")
        return None if watch is None else context.invoke(watch)
    return None


def run_cli(arguments: Sequence[str] | None = None) -> int:
    """Run one command; whatever goes wrong is one line on stderr and an exit code, never a traceback."""
    try:
        result = cli.main(None if arguments is None else list(arguments), prog_name="lunscope", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has had enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.ClickException as error:
        return _complain(_with_hint(error), error.exit_code)
    except LunscopeError as error:
        return _complain(str(error), error.exit_code)
    except OSError as error:
        return _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), 1)
    return result if isinstance(result, int) else 0


def _with_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    message = " ".join(error.format_message().split())
    return message if context is None else f"{message} (see {context.command_path} --help)"


def _complain(text: str, exit_code: int) -> int:
    click.echo(f"lunscope: {safe_text(text)}", err=True)
    return exit_code
