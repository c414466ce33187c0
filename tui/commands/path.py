"""`lunscope path`: which paths LUNs have, and a drill that takes some of them offline for a time."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from engine.errors import UsageError
from engine.hostfs.kernel_files import Roots
from engine.job.sizes import parse_duration
from engine.strict_json import dump_json
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tui.commands.tune import WithCommand, arguments_of
from tui.headless.path_drill import begin_drill, list_paths, plan_lines
from tui.headless.shown import print_sections
from tui.options.reading import root_options


@click.group("path", invoke_without_command=True, short_help="the paths of LUNs, and a drill that takes some offline")
@click.pass_context
def command(context: click.Context) -> None:
    """Show the paths of LUNs, and take some of them offline for a time. See docs/path-drill.md."""
    if context.invoked_subcommand is None:
        raise click.UsageError("say what: list or offline", context)


@command.command("list", short_help="paths with their LUNs, and whether each may be taken offline")
@click.argument("scopes", nargs=-1, metavar="[SCOPE]...")
@root_options
def list_command(scopes: tuple[str, ...], *, procfs: Path, sysfs: Path) -> None:
    """List the paths of a scope, each with its LUNs and why it must stay, if it must.

    Without a scope all disks of the host that may be paths: of SCSI, of NVMe, and those of multipath maps.
    """
    with KernelTree(sysfs) as tree:
        print_sections([list_paths(Host(tree), Roots(procfs, sysfs), scopes)])


@command.command("offline", cls=WithCommand, short_help="take paths offline for a time, and say what that did")
@click.argument("scopes", nargs=-1, required=True, metavar="SCOPE...")
@click.option("--for", "duration", metavar="TIME", help="How long (60s, 5m); Ctrl-C brings the paths back at once.")
@click.option(
    "--around", default="5s", show_default=True, metavar="TIME", help="How long is measured before and after."
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done, after all checks.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.path-drill/1).")
@root_options
@click.pass_context
def offline_command(
    context: click.Context,
    scopes: tuple[str, ...],
    *,
    duration: str | None,
    around: str,
    dry_run: bool,
    as_json: bool,
    procfs: Path,
    sysfs: Path,
) -> int:
    """Take all paths of a SCOPE offline (sda, port:host3), measure their LUNs, and bring the paths back.

    Nothing is taken offline unless every LUN keeps another path that is usable and answers a read. The paths come back
    when the time is over, and at once at Ctrl-C, when a LUN loses the paths that were left, or when lunscope ends,
    however that happens. `-- COMMAND...` runs a load meanwhile: the drill begins after it, and its exit code is that of
    COMMAND.
    """
    if duration is None:
        raise UsageError("say how long: --for 60s")
    offline_s, around_s = parse_duration(duration), parse_duration(around)
    if offline_s <= 0:
        raise UsageError("--for 0s is no time: write --for 60s")
    roots = Roots(procfs, sysfs)
    with KernelTree(sysfs) as tree:
        if dry_run:
            print_sections([plan_lines(tree, roots, scopes)])
            return 0
        shown = begin_drill(
            tree,
            roots,
            scopes,
            arguments_of(context),
            offline_s=offline_s,
            around_s=around_s,
            output=sys.stderr if as_json else None,
        )
    if as_json:
        click.echo(dump_json(shown.document))
    else:
        print_sections([shown.section])
    return shown.status
