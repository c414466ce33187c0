"""What a run without a screen prints at its end, as text or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct

from collectors.advice.finding import Finding, findings_document
from collectors.advice.of_run import findings_of_load, findings_of_run
from collectors.reports.documents.run_result import group_sections, result_sections
from collectors.reports.run_devices import RunDevices, devices_document
from collectors.reports.run_events import run_events_document
from engine.events import Event
from engine.job.formats.read_job import ReadJob
from engine.replacing import replace
from engine.results.group_result import GroupResult, group_document
from engine.results.response_times import response_document
from engine.results.result import RunResult
from engine.results.result_document import run_document
from engine.strict_json import dump_json
from tui.headless.precondition import Preconditioned
from tui.headless.shown import print_sections


class ResultOutput(Struct, frozen=True):
    """Where results are saved in addition to standard output."""

    as_json: bool
    fio_json: Path | None
    preconditioned: Preconditioned | None = None
    """What was written to the targets before."""


class FoundBelow(Struct, frozen=True, eq=False):
    """What the devices below the targets did, the facts of the host, and what happened on it."""

    devices: RunDevices | None
    host: Mapping[str, object] | None
    events: Sequence[Event] = ()
    """What happened on the host meanwhile, by time."""


def print_phase(result: RunResult | GroupResult, found: FoundBelow, read: ReadJob, output: ResultOutput) -> None:
    """Print one of the phases of a file, with its name if there are several."""
    is_group, done = isinstance(result, GroupResult), output.preconditioned
    document = _group_json(result, found) if isinstance(result, GroupResult) else _run_json(result, found)
    document["preconditioned"] = None if done is None else done.document
    if output.as_json:
        click.echo(dump_json(document))
        return
    if done is not None and not is_group:
        click.echo(done.line)
    if isinstance(result, GroupResult):
        print_sections(group_sections(result, document))
    else:
        name = result.about.job.name if len(read.phases) > 1 else ""
        print_sections(result_sections(result, document, name or "Run"))


def print_result(result: RunResult, events: Sequence[Event]) -> None:
    """Print the result of a load of which nothing else is known than what happened on the host."""
    document = {**run_document(result), "events": run_events_document(events)}
    print_sections(result_sections(result, document, "Run"))


def _run_json(result: RunResult, found: FoundBelow) -> dict[str, object]:
    return {
        **run_document(result),
        "preconditioned": None,
        "devices": devices_document(found.devices),
        "host": found.host,
        "findings": findings_document(findings_of_run(result, found.devices)),
        "response_times": response_document(result),
        "loads": None,
        "events": run_events_document(found.events),
    }


def _group_json(group: GroupResult, found: FoundBelow) -> dict[str, object]:
    document = group_document(group)
    loads = document.pop("loads")
    return {
        **document,
        "preconditioned": None,
        "devices": devices_document(found.devices),
        "host": found.host,
        "findings": findings_document(_group_findings(group)),
        "response_times": None,
        "loads": loads,
        "events": run_events_document(found.events),
    }


def _group_findings(group: GroupResult) -> tuple[Finding, ...]:
    """Find what limited each load by its own figures: those of a device are of all loads on it."""
    return tuple(
        replace(finding, where=f"[{load.name}]") for load in group.loads for finding in findings_of_load(load.result)
    )
