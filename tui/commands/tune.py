"""`lunscope tune`: tunables of devices and control groups, changed all together, recorded and restored."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from engine.errors import LunscopeError, UsageError
from engine.job.sizes import parse_duration
from engine.strict_json import dump_json
from engine.text import safe_text
from engine.tune.change import undo
from engine.tune.follow import FollowedScope
from engine.tune.journal import Journal
from engine.tune.persist import configuration, settings_of, write_files
from engine.tune.planned_writes import make_plan, parse_settings
from engine.tune.present_values import alike, chosen_tunables, read_values
from engine.tune.record import ChangeRecord, State
from engine.tune.registry import TUNABLES
from engine.tune.scope import SCOPE_FORMS, Host, scopes_or_all
from engine.tune.tree import KernelTree
from engine.tune.udev_rules import SavedSetting
from tui.headless.held_change import follow_and_end, make_and_end
from tui.headless.shown import print_sections
from tui.headless.tune_text import (
    change_lines,
    list_section,
    name_lines,
    plan_section,
    target_sections,
    values_document,
)
from tui.process.standard_streams import say

_COMMAND = "lunscope.command"

_sysfs = click.option(
    "--sysfs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="/sys",
    show_default=True,
    help="Where sysfs is mounted.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.tune/1).")


@click.group("tune", invoke_without_command=True, short_help="tunables of devices and control groups")
@click.pass_context
def command(context: click.Context) -> None:
    """Show and change tunables of disks, paths, HBA ports, NVMe subsystems and control groups.

    A change is made on all targets of its scope or on none, compared with what the kernel has afterwards, recorded,
    and restored unless it is kept. See docs/tune.md.
    """
    if context.invoked_subcommand is None:
        raise click.UsageError("say what: list, get, set, undo or save", context)


@command.command("list", short_help="all tunables with their values, alike ones in one line")
@click.argument("scopes", nargs=-1, metavar="[SCOPE]...")
@click.option("--names", is_flag=True, help="What each tunable is, without values.")
@_json
@_sysfs
def list_command(scopes: tuple[str, ...], *, names: bool, as_json: bool, sysfs: Path) -> None:
    """List tunables, present values, defaults and legal values; of the whole host without a scope."""
    if names:
        _print(name_lines(TUNABLES))
        return
    _show((), scopes, as_json=as_json, sysfs=sysfs, one_by_one=False)


@command.command("get", short_help="values of one tunable, a line for each target")
@click.argument("name")
@click.argument("scopes", nargs=-1, metavar="[SCOPE]...")
@_json
@_sysfs
def get_command(name: str, scopes: tuple[str, ...], *, as_json: bool, sysfs: Path) -> None:
    """Show the values of a tunable; NAME may be a glob, as 'iosched/*'."""
    _show((name,), scopes, as_json=as_json, sysfs=sysfs, one_by_one=True)


def _show(names: Sequence[str], scopes: Sequence[str], *, as_json: bool, sysfs: Path, one_by_one: bool) -> None:
    tunables = chosen_tunables(names)
    with KernelTree(sysfs) as tree:
        host = Host(tree)
        values = list(read_values(host, host.select(scopes_or_all(scopes)), tunables))
    if as_json:
        click.echo(dump_json(values_document(values, tunables)))
        return
    if not values:
        raise UsageError(f"{', '.join(names) or 'tunables'}: nothing in this scope has it")
    print_sections(target_sections(values) if one_by_one else [list_section(alike(values))])


class WithCommand(click.Command):
    """Takes what follows `--` as a command to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Split at the first `--`."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def arguments_of(context: click.Context) -> list[str]:
    """Return what followed `--`."""
    found: list[str] = context.meta.get(_COMMAND, [])
    return found


@command.command("set", cls=WithCommand, short_help="change values: while a command runs, for a time, or until undone")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@click.option("--on", "scopes", multiple=True, required=True, metavar="SCOPE", help=f"Repeat for more: {SCOPE_FORMS}.")
@click.option("--for", "duration", metavar="TIME", help="Restore after this time (60s, 5m), or at Ctrl-C.")
@click.option("--keep", is_flag=True, help="Leave it in force until `tune undo`, or a reboot.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written, after all checks.")
@click.option(
    "--follow",
    is_flag=True,
    help="Set it on devices that come into the scope later, too, and say what no longer has it. [until Ctrl-C]",
)
@click.option("--nearest", is_flag=True, help="Accept a value that the kernel rounds instead of failing.")
@_sysfs
@click.pass_context
def set_command(
    context: click.Context,
    settings: tuple[str, ...],
    *,
    scopes: tuple[str, ...],
    duration: str | None,
    keep: bool,
    dry_run: bool,
    follow: bool,
    nearest: bool,
    sysfs: Path,
) -> int:
    """Change tunables on all targets of a scope, or on none.

    One of --for TIME, --keep or `-- COMMAND...` says how long: the values are restored when the time is over, or when
    COMMAND ends, also after kill -9. Each value is compared with what the kernel has after the write.
    """
    arguments = arguments_of(context)
    duration_s = None if duration is None else parse_duration(duration)
    if not dry_run:
        _check_ending(arguments, duration_s, keep=keep, follow=follow)
    given = parse_settings(settings)
    with KernelTree(sysfs) as tree:
        host = Host(tree)
        plan = make_plan(host, given, host.select(scopes))
        if dry_run:
            print_sections([plan_section(plan)])
            return 0
        if follow:
            followed = FollowedScope(tree, given, scopes, duration_s=duration_s)
            return follow_and_end(followed, arguments, duration_s)
        return make_and_end(tree, plan, given, arguments, keep=keep, duration_s=duration_s, nearest=nearest)


def _check_ending(arguments: list[str], duration_s: float | None, *, keep: bool, follow: bool) -> None:
    if follow and keep:
        raise UsageError("--follow follows while lunscope runs: leave --keep out; `tune save --as-scope` is for later")
    given = [bool(arguments), duration_s is not None, keep or (follow and not arguments and duration_s is None)]
    if sum(given) != 1:
        raise UsageError("say how long: exactly one of --for TIME, --keep, or -- COMMAND... at the end")
    if duration_s is not None and duration_s <= 0:
        raise UsageError("--for 0s is no time: write --for 60s")
    if arguments and shutil.which(arguments[0]) is None:
        raise UsageError(f"{safe_text(arguments[0])}: no such command: nothing was changed")


@command.command("undo", short_help="restore changes that were kept, the latest first")
@click.option("--change", "number", type=int, metavar="N", help="This change instead of the latest.")
@click.option("--all", "everything", is_flag=True, help="All changes in force, the latest first.")
@click.option("--force", is_flag=True, help="Also restore values that somebody else has changed since.")
@click.option("--list", "listing", is_flag=True, help="Only list changes: who, when, what, and whether in force.")
@_sysfs
def undo_command(*, number: int | None, everything: bool, force: bool, listing: bool, sysfs: Path) -> int:
    """Restore what a change replaced.

    A value that is no longer the one that was set is left as it is, and said; --force restores that, too.
    """
    journal = Journal()
    with KernelTree(sysfs) as tree:
        records = [record for record in journal.records() if record.root == str(tree.root)]
        if listing:
            _print(line for record in records for line in change_lines(record, held=journal.is_held(record.number)))
            return 0
        left = [line for record in _to_undo(journal, records, number, everything=everything) for line in
                _undo(tree, journal, record, force=force)]  # fmt: skip
    return 1 if left else 0


def _to_undo(
    journal: Journal, records: list[ChangeRecord], number: int | None, *, everything: bool
) -> list[ChangeRecord]:
    if number is not None:
        found = [record for record in records if record.number == number]
        if not found:
            raise UsageError(f"change {number}: there is none: `lunscope tune undo --list` lists them")
        if found[0].state not in {State.KEPT, State.HELD, State.CHANGING}:
            raise UsageError(f"change {number} is not in force: it is {found[0].state}")
        return found
    behind = {record.number for record in journal.left_behind()}
    waiting = [record for record in records if record.state is State.KEPT or record.number in behind]
    if not waiting:
        raise LunscopeError("no change is in force that could be undone")
    return waiting[::-1] if everything else waiting[-1:]


def _undo(tree: KernelTree, journal: Journal, record: ChangeRecord, *, force: bool) -> tuple[str, ...]:
    restored = undo(tree, journal, record, force=force)
    for line in restored.left:
        say(f"not restored: {line}")
    hint = "; --force restores the rest, too" if restored.remaining and not force else ""
    say(f"change {record.number}: {restored.back:,} of {len(record.plan.writes):,} values are as before it{hint}")
    return restored.left


@command.command("save", short_help="values as udev rules, systemd drop-ins and options of modules")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--on", "scopes", multiple=True, metavar="SCOPE", help=f"With NAME, repeat for more: {SCOPE_FORMS}.")
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Write new files into this folder; nothing is replaced.",
)
@click.option(
    "--as-scope",
    "as_scope",
    is_flag=True,
    help="One rule for all SCSI disks of a vendor and model: a LUN that comes later gets the values, too.",
)
@_sysfs
def save_command(
    names: tuple[str, ...], *, scopes: tuple[str, ...], folder: Path | None, as_scope: bool, sysfs: Path
) -> None:
    """Print the configuration that sets values at boot: of the changes that are kept, or of NAMEs on a scope.

    Nothing is installed: the text says where each file belongs.
    """
    with KernelTree(sysfs) as tree:
        settings = _present(tree, names, scopes) if names else _kept(tree)
        saved = configuration(tree, settings, by_model=as_scope)
    for file in saved.files:
        click.echo(f"# {file.belongs}\n{safe_lines(file.text)}")
    for line in saved.left_out:
        say(line)
    if not saved.files:
        raise UsageError("nothing to save: no change is kept; name tunables and --on SCOPE for present values")
    if folder is not None:
        for path in write_files(folder, saved.files):
            say(f"{path}: written")


def _present(tree: KernelTree, names: Sequence[str], scopes: Sequence[str]) -> list[SavedSetting]:
    host = Host(tree)
    values = read_values(host, host.select(scopes_or_all(scopes)), chosen_tunables(names))
    return [SavedSetting(value.tunable, value.target, value.value) for value in values]


def _kept(tree: KernelTree) -> list[SavedSetting]:
    """Values of the changes that are kept."""
    records = (record for record in Journal().records() if record.root == str(tree.root))
    return settings_of(record for record in records if record.state is State.KEPT)


def safe_lines(text: str) -> str:
    """Make each line safe for a terminal."""
    return "\n".join(safe_text(line) for line in text.splitlines())


def _print(lines: Any) -> None:  # noqa: ANN401 (any iterable of lines)
    for line in lines:
        click.echo(line)
