"""`lunscope doctor`: what works here and how to enable more."""

from __future__ import annotations

from pathlib import Path

import click

from collectors.doctor import Check, Status, examine
from engine.strict_json import dump_json
from tui.options.reading import root_options, tier_option, types_named_by

NEEDED_FOR = {"exact": "exact time", "sampled": "in-flight sampling", "kernel": "diskstats"}
"""The check that decides on a tier."""

_MARK = {Status.OK: "ok ", Status.LIMITED: "!  ", Status.MISSING: "-  "}


@click.command(short_help="what works on this host, and how to enable more")
@root_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.doctor/1).")
@tier_option
def command(procfs: Path, sysfs: Path, *, as_json: bool, tier: str) -> int:
    """Show what works on this host, the tier of its figures, and what root or a capability would add.

    With --tier it exits 1 if that tier is unavailable.
    """
    checks = examine(procfs, sysfs, types_named_by())
    _show(checks, as_json=as_json)
    needed = NEEDED_FOR.get(tier, "")
    return int(any(check.id == needed and check.status is Status.MISSING for check in checks))


def _show(checks: tuple[Check, ...], *, as_json: bool) -> None:
    if as_json:
        click.echo(dump_json({"schema": "lunscope.doctor/1", "checks": [*map(_document, checks)]}))
        return
    width = max(len(check.id) for check in checks)
    for check in checks:
        click.echo(_line(check, width))


def _document(check: Check) -> dict[str, str]:
    return {"id": check.id, "status": check.status, "found": check.found, "mend": check.fix}


def _line(check: Check, width: int) -> str:
    fix = f"  -> {check.fix}" if check.fix else ""
    return f"{_MARK[check.status]} {check.id:<{width}}  {check.found}{fix}"
