"""`lunscope export`: export the figures of a recording."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from collectors.reports.export import EVENT_TABLE, FORMATS, TABLES, Selection, export_lines
from collectors.reports.parquet import PARQUET, write_parquet
from collectors.reports.slow_tables import SLOW_TABLES
from collectors.session.reader import SessionReader
from collectors.session.recorded_loads import scenario_of
from collectors.session.time_format import parse_when
from engine.errors import UsageError
from engine.job.formats.choose import write_new
from engine.job.scenario import Scenario, dump_scenario
from engine.text import safe_text
from tui.options.numbers import WHOLE
from tui.process.standard_streams import say

SCENARIO = "scenario"
"""The format without rows."""


@click.command(short_help="the figures of a recording as csv, jsonl or parquet")
@click.argument("recording", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice([*FORMATS, SCENARIO, PARQUET]),
    required=True,
    help="Output format; see below.",
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help=f"Of {', '.join(TABLES)}; repeat for more. Or {', '.join(SLOW_TABLES)}, or {EVENT_TABLE}.",
)
@click.option("--fields", metavar="ID,...", help="Field ids in output order; default: all of the table.")
@click.option("--from", "start", metavar="TIME", help="HH:MM[:SS], ISO, epoch seconds, or +90s after the start.")
@click.option("--to", "end", metavar="TIME", help="As --from.")
@click.option("--load", type=WHOLE, metavar="N", help="The load to export as a scenario, if there are several.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a new file instead of stdout."
)
def command(
    *,
    recording: Path,
    format_: str,
    tables: tuple[str, ...],
    fields: str | None,
    start: str | None,
    end: str | None,
    load: int | None,
    output: Path | None,
) -> None:
    """Write a row per device and sample to stdout: time, name, identity and the figures by their ids.

    The table slow_ios has a row per I/O, slow_calls one per NFS call: the slowest of each interval, where exact time
    was recorded. The table events has a row per event: alerts, knob turns, notes, hot-plug.

    Missing values are empty in csv and null in jsonl, never 0.

    The format scenario is the job of a recorded load with every knob turn and its time; `lunscope run` can
    run it again.

    The format parquet has a column per figure, with its unit and tier in the metadata; it needs -o and pyarrow
    (in the sources of lunscope, pip install '.[parquet]').
    """
    if format_ == PARQUET and output is None:
        raise UsageError("--format parquet: name the new file with -o FILE")
    reader = SessionReader(recording)
    if format_ == SCENARIO:
        _write(dump_scenario(_scenario(reader, load)).splitlines(), output)
        return
    span = reader.start_ns, reader.end_ns
    selection = Selection(tables or ("disks",), tuple(fields.split(",")) if fields else ())
    start_ns = None if start is None else parse_when(start, *span)
    end_ns = None if end is None else parse_when(end, *span)
    if format_ == PARQUET and output is not None:
        write_parquet(reader, output, selection, start_ns, end_ns)
    else:
        _write(export_lines(reader, format_, selection, start_ns, end_ns), output)
    if reader.notice:
        say(f"{recording}: {reader.notice}")


def _scenario(reader: SessionReader, load: int | None) -> Scenario:
    last = reader.times_at(len(reader) - 1) or reader.times_at(reader.first)
    assert last is not None
    return scenario_of(reader.events(), load, last[1], safe_text(str(reader.path)))


def _write(lines: Iterable[str], output: Path | None) -> None:
    if output is not None:
        write_new(output, (f"{line}\n" for line in lines))
        return
    for line in lines:
        click.echo(line)
