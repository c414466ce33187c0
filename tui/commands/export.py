"""`lunscope export`: the figures of a recording for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from collectors.export import FORMATS, TABLES, Selection, export_lines
from collectors.session.reader import SessionReader
from collectors.session.when import parse_when
from collectors.slow_io_export import SLOW_TABLE


@click.command(short_help="the figures of a recording as csv or jsonl")
@click.argument("recording", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(list(FORMATS)), required=True, help="What to write.")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help=f"Of {', '.join(TABLES)}; repeat for more. Or {SLOW_TABLE}.",
)
@click.option("--fields", metavar="ID,...", help="Field ids, in the order wanted; all of the table if not given.")
@click.option("--from", "start", metavar="TIME", help="HH:MM[:SS], ISO, epoch seconds, or +90s after the start.")
@click.option("--to", "end", metavar="TIME", help="As --from.")
def command(
    *, recording: Path, format_: str, tables: tuple[str, ...], fields: str | None, start: str | None, end: str | None
) -> None:
    """Write a row per device and sample to stdout: time, name, identity and the figures by their ids.

    Of the table slow_ios it is a row per I/O: the slowest of each interval, where exact time was recorded.

    Missing is empty in csv and null in jsonl, never 0.
    """
    reader = SessionReader(recording)
    span = reader.start_ns, reader.end_ns
    selection = Selection(tables or ("disks",), tuple(fields.split(",")) if fields else ())
    start_ns = None if start is None else parse_when(start, *span)
    end_ns = None if end is None else parse_when(end, *span)
    for line in export_lines(reader, format_, selection, start_ns, end_ns):
        click.echo(line)
    if reader.notice:
        click.echo(f"lunscope: {recording}: {reader.notice}", err=True)
