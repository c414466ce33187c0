"""The command line: one verb per file in tui.commands, imported only when it is called."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence

import click

from engine.errors import LunscopeError, more_open_files, shortage
from engine.text import short_text
from tui.headless.leaving import OwnProcess
from tui.process.crash import crash_line, report_threads
from tui.process.garbage import loading
from tui.process.standard_streams import OUTPUT_NAME, drop_output, prepare_streams, say
from tui.process.stuck_call import Watch
from tui.terminal.modes import remember_terminal

VERBS: dict[str, str] = {
    "watch": "this host's disks on the screen, live",
    "run": "watch this host and drive a load",
    "sweep": "drive a load over the values of its knobs, and find the knee",
    "verify": "find damaged blocks after a load with --verify",
    "report": "disks, paths and HBA ports as text or JSON lines, like sar",
    "scan": "the device graph: HBA ports, paths, LUNs, what is built on them",
    "record": "record this host to a session file, without a screen",
    "replay": "show a recording on the same screens",
    "export": "the figures of a recording as csv or jsonl",
    "fleet": "one picture and one load over many hosts, over ssh",
    "metrics": "raw counters and histograms for Prometheus",
    "compare": "two recordings, or parts of them: better, worse or equivalent",
    "tune": "tunables of devices and control groups: list, get, set, undo, save",
    "path": "the paths of LUNs, and a drill that takes some of them offline for a time",
    "doctor": "what works on this host, and how to enable more",
    "probe": "exact time for users who may not trace: the privileged helper",
    "agent": "the part of `lunscope fleet` on each host",
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


def _show_version(context: click.Context, _param: click.Parameter, asked: bool) -> None:
    if asked and not context.resilient_parsing:
        from engine.version import version  # noqa: PLC0415 (reads the list of what is installed)

        click.echo(f"lunscope, version {version()}")
        context.exit()


@click.command(cls=LazyVerbs, invoke_without_command=True, subcommand_metavar="[VERB] [ARGS]...")
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(context: click.Context) -> int | None:
    """Lunscope: an oscilloscope for storage. Without a verb it watches this host."""
    if context.invoked_subcommand is None:
        watch = cli.get_command(context, "watch")
        return None if watch is None else context.invoke(watch)
    return None


def run_cli(arguments: Sequence[str] | None = None) -> int:
    """Run one command; every error is one line on stderr and an exit code, never a traceback."""
    prepare_streams()
    report_threads()
    try:
        return _run(arguments)
    except BrokenPipeError:
        # The reader closed the pipe; Python would report it again when it flushes at exit.
        drop_output()
        return 1
    except SystemExit:
        raise
    except BaseException as error:  # also what a panic of the native core becomes
        return _ended_by(error)


def _ended_by(error: BaseException) -> int:
    match error:
        case KeyboardInterrupt() | click.Abort():
            return 130
        case click.ClickException():
            return _complain(_with_hint(error), error.exit_code)
        case LunscopeError():
            return _complain(_with_limit(str(error)), error.exit_code)
        case OSError():
            return _complain(shortage(error) or _reason(error), 1)
        case _:
            return _complain(crash_line(error), 1)


def _run(arguments: Sequence[str] | None) -> int:
    own = None if arguments is not None else OwnProcess(remember_terminal, Watch())
    given = None if arguments is None else list(arguments)
    result = cli.main(given, prog_name="lunscope", standalone_mode=False, obj=own)
    sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _reason(error: OSError) -> str:
    if error.filename == OUTPUT_NAME:
        drop_output()
    if error.filename is None:
        return _with_limit(str(error))
    # Without a free descriptor the import of the next module may fail first.
    subject = "" if str(error.filename).endswith((".py", ".so")) else f"{error.filename}: "
    return f"{subject}{_with_limit(str(error.strerror))}"


def _with_limit(text: str) -> str:
    """Add the limit to an error about missing descriptors."""
    missing = any(os.strerror(number) in text for number in (errno.EMFILE, errno.ENFILE))
    return f"{text}: {more_open_files()}" if missing and "ulimit" not in text else text


def _with_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    message = short_text(" ".join(error.format_message().split()))
    return message if context is None else f"{message} (see {context.command_path} --help)"


def _complain(text: str, exit_code: int) -> int:
    say(short_text(text))
    return exit_code
