"""What a run without a screen prints at its end, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct

from collectors.advice.finding import Finding, finding_lines, findings_document
from collectors.advice.of_run import findings_of_load, findings_of_run
from collectors.reports.run_devices import RunDevices, device_lines, devices_document
from collectors.reports.run_events import run_event_lines, run_events_document
from engine.events import Event
from engine.job.formats.read_job import ReadJob
from engine.replacing import replace
from engine.results.group_document import group_document
from engine.results.group_result import GroupResult
from engine.results.response_times import response_document, response_lines
from engine.results.result import RunResult
from engine.results.result_document import run_document
from engine.results.result_text import group_lines, summary_lines
from engine.strict_json import dump_json
from engine.text import safe_text
from tui.headless.precondition import Preconditioned


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
    if output.as_json:
        document = _group_json(result, found) if isinstance(result, GroupResult) else _run_json(result, found)
        done = output.preconditioned
        document["preconditioned"] = None if done is None else done.document
        click.echo(dump_json(document))
    elif isinstance(result, GroupResult):
        for line in _group_text(result, found):
            click.echo(safe_text(line))
    else:
        _print_run(result, found, read, output.preconditioned)


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


def _group_text(group: GroupResult, found: FoundBelow) -> Iterator[str]:
    for load in group.loads:
        yield f"[{load.name}]"
        yield from _with_gap(summary_lines(load.result))
    yield from _with_gap([*group_lines(group)])
    yield from device_lines(found.devices)
    yield from finding_lines(_group_findings(group))
    yield from run_event_lines(found.events)


def _with_gap(lines: list[str]) -> list[str]:
    return [*lines, ""] if lines[-1] else lines


def _print_run(result: RunResult, found: FoundBelow, read: ReadJob, done: Preconditioned | None) -> None:
    if len(read.phases) > 1:
        click.echo(f"[{safe_text(result.about.job.name)}]")
    if done is not None:
        click.echo(done.line)
    findings = findings_of_run(result, found.devices)
    for line in (
        *_with_gap(summary_lines(result)),
        *device_lines(found.devices),
        *finding_lines(findings),
        *response_lines(result),
        *run_event_lines(found.events),
    ):
        click.echo(safe_text(line))
