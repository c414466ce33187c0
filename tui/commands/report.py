"""`lunscope report`: text like sar(1), with queue and service time, live or from a recording."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from collectors.all_subjects import REPORTED
from collectors.derive.downsample import TOLERANCE
from collectors.model import Step, Tier
from collectors.reports.formats.registry import formats
from collectors.reports.page import report_of
from collectors.reports.report import ReportOptions, report_json, report_text, with_tier
from collectors.reports.totals.since_mark import TotalsReport, totals_document, totals_lines, totals_since, totals_up_to
from collectors.sampling.schedule import SECOND_NS
from collectors.session.reader import SessionReader
from collectors.sources.live import WHOLE_TOPOLOGY_S, LiveSource
from engine.errors import UsageError
from engine.replacing import replace
from engine.strict_json import dump_json
from engine.text import decimal_number, safe_text, short_text
from tui.headless.document_files import DocumentFiles, format_options
from tui.headless.signals import stop_on_signal
from tui.options.numbers import FROM_ONE, Decimal
from tui.options.reading import PATIENCE_S, cost_option, reading_settings, root_options, tier_option
from tui.process.standard_streams import say

_BEST = {"sampled": Tier.SAMPLED, "kernel": Tier.KERNEL}
"""Reading limits for recordings."""


class _Interval(Decimal):
    """Seconds; the recording that somebody names in their place is read with an option."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a given value."""
        if isinstance(value, str) and decimal_number(value) is None and os.path.isfile(value):  # noqa: PTH113 - whatever it is
            self.fail(f"{safe_text(short_text(value, 80))} is a file: read a recording with --from FILE", param, ctx)
        return super().convert(value, param, ctx)


def _subject_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add a flag for each subject that can be reported."""
    for subject in reversed(REPORTED):
        report = report_of(subject)
        command = click.option(report.option, subject.table, is_flag=True, help=report.help)(command)
    return command


def _format_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option with a file for each format of documents."""
    for form in reversed(formats()):
        path = click.Path(path_type=Path)
        command = click.option(f"--{form.option}", type=path, metavar="FILE", help=form.help)(command)
    return command


_SUBJECTS = f"{', '.join(subject.one for subject in REPORTED[:-1])} or {REPORTED[-1].one}"
_HELP = f"""Report each {_SUBJECTS} every INTERVAL seconds, COUNT times, then averages.

Without INTERVAL one second is measured once; with INTERVAL alone it repeats until interrupted. From a recording
every recorded interval is shown, or longer ones of INTERVAL seconds.
"""


@click.command(help=_HELP, short_help="every disk, path, port ... as text or JSON lines, like sar")
@_subject_options
@click.option("-R", "split", is_flag=True, help="Reads and writes separately.")
@click.option("-P", "distribution", is_flag=True, help="Percentiles and peaks instead of means (exact time only).")
@click.option("--all", "all_disks", is_flag=True, help="Also disks without any I/O in the interval.")
@click.option(
    "--from", "recording", type=click.Path(path_type=Path), metavar="FILE", help="A recording, not this host."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document per interval and line (lunscope.report/1).")
@_format_options
@click.option(
    "--since-mark",
    metavar="NAME",
    help="Totals of each since a note or mark of the recording: its text, what it cleared, or last.",
)
@click.option(
    "--since",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Totals of each from the end of a recording of this host (lunscope record -o FILE --duration 1s) up to now.",
)
@click.option("--overwrite", is_flag=True, help=f"Replace the file of {format_options()} if it is such a report.")
@tier_option
@cost_option
@click.argument("interval", type=_Interval(), required=False)
@click.argument("count", type=FROM_ONE, required=False)
@root_options
def command(
    *,
    split: bool,
    distribution: bool,
    all_disks: bool,
    recording: Path | None,
    as_json: bool,
    since_mark: str | None,
    since: Path | None,
    overwrite: bool,
    tier: str,
    interval: float | None,
    count: int | None,
    procfs: Path,
    sysfs: Path,
    **chosen: Any,  # noqa: ANN401 (a flag for each subject, a path for each format)
) -> None:
    """Print a report of the selected subjects."""
    if interval is not None and interval <= 0:
        raise UsageError(f"interval {interval:g} s: give a length above 0")
    tables = tuple(subject.table for subject in REPORTED if chosen[subject.table])
    options = ReportOptions(
        tables, split=split, distribution=distribution, all_disks=all_disks, count=count, interval_s=interval
    )
    wanted = {form: chosen[form.option] for form in formats() if chosen[form.option] is not None}
    if since_mark is not None:
        if recording is None or wanted or interval is not None or split or distribution:
            raise UsageError(
                f"--since-mark adds up a recording: give --from FILE, and no interval, -R, -P or {format_options()}"
            )
        with SessionReader(recording) as reader:
            totals = totals_since(reader, since_mark, tables or ("disks",), every=all_disks)
            _print_totals(totals, reader, as_json=as_json)
        return
    if since is not None:
        if recording is not None or wanted or interval is not None or split or distribution:
            raise UsageError(f"--since adds up this host up to now: no --from, interval, -R, -P or {format_options()}")
        with SessionReader(since) as reader, _live(1.0, procfs, sysfs, "kernel") as steps:
            totals = totals_up_to(reader, next(steps).current, tables or ("disks",), every=all_disks)
            _print_totals(totals, reader, as_json=as_json)
        return
    if wanted or overwrite:
        files = DocumentFiles(wanted, overwrite)
        files.check(recording, as_json=as_json, count=count)
        assert recording is not None, "checked"
        best = _BEST.get(tier, Tier.EXACT)
        files.write(recording, tables=tables, split=split, all_rows=all_disks, interval_s=interval, best=best)
        return
    if recording is not None:
        _from_recording(SessionReader(recording), tier, options, as_json=as_json)
        return
    if interval is None:
        options = replace(options, count=1, interval_s=1.0)
    with _live(_tick_s(options), procfs, sysfs, tier) as steps:
        _print(steps, options, as_json=as_json)


def _tick_s(options: ReportOptions) -> float:
    """Choose the sampling interval: average peak latency is over seconds, however long the report's intervals are."""
    interval_s = options.interval_s or 1.0
    return interval_s / math.ceil(interval_s) if options.distribution else interval_s


def _from_recording(reader: SessionReader, tier: str, options: ReportOptions, *, as_json: bool) -> None:
    """Print a recording, with no better tier than the requested one."""
    _check_interval(reader, options.interval_s)
    steps = with_tier(reader.steps(reader.first, len(reader) - 1), _BEST.get(tier, Tier.EXACT))
    _print(steps, options, as_json=as_json)
    if reader.notice:
        say(f"{reader.path}: {reader.notice}")


def _check_interval(reader: SessionReader, interval_s: float | None) -> None:
    """Refuse an interval that is longer than all of a recording: nothing could be printed."""
    ends = [reader.times_at(index) for index in (reader.first, len(reader) - 1)]
    if interval_s is None or None in ends:
        return
    (_, begin_ns), (_, end_ns) = (end for end in ends if end is not None)
    lasts_s = (end_ns - begin_ns) / SECOND_NS
    if 0 < lasts_s < interval_s * TOLERANCE:
        name = safe_text(str(reader.path))
        raise UsageError(f"{name}: lasts {lasts_s:.3g} s, no interval of {interval_s:g} s: give a shorter one")


def _print_totals(report: TotalsReport, reader: SessionReader, *, as_json: bool) -> None:
    """Print totals, and what is said of the recording they begin in."""
    notice = reader.notice
    if as_json:
        click.echo(dump_json(totals_document(report)))
    else:
        for line in totals_lines(report):
            click.echo(line)
    if notice:
        say(f"{reader.path}: {notice}")


@contextmanager
def _live(interval_s: float, procfs: Path, sysfs: Path, tier: str) -> Iterator[Iterator[Step]]:
    stop = threading.Event()
    source = LiveSource(
        interval_s,
        procfs,
        sysfs,
        tier,
        first_topology_s=WHOLE_TOPOLOGY_S,
        patience_s=PATIENCE_S,
        say=say,
        settings=reading_settings(),
    )
    try:
        with stop_on_signal(stop):
            yield source.steps(stop)
    finally:
        source.close()


def _print(steps: Iterator[Step], options: ReportOptions, *, as_json: bool) -> None:
    for line in report_json(steps, options) if as_json else report_text(steps, options):
        click.echo(line)
