"""`lunscope doctor`: what works here and what would lift it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import click

from collectors.doctor import Check, Status, examine
from tui.roots import root_options

_MARK = {Status.OK: "ok ", Status.LIMITED: "!  ", Status.MISSING: "-  "}


@click.command(short_help="what works on this host, and what would lift it")
@root_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.doctor/1).")
def command(procfs: Path, sysfs: Path, *, as_json: bool) -> None:
    """Say what works on this host, which tier its figures get, and what root or a capability would add."""
    checks = examine(procfs, sysfs)
    if as_json:
        document = {"schema": "lunscope.doctor/1", "checks": [dataclasses.asdict(check) for check in checks]}
        click.echo(json.dumps(document))
        return
    width = max(len(check.id) for check in checks)
    for check in checks:
        click.echo(_line(check, width))


def _line(check: Check, width: int) -> str:
    mend = f"  -> {check.mend}" if check.mend else ""
    return f"{_MARK[check.status]} {check.id:<{width}}  {check.found}{mend}"
