"""`lunscope metrics`: raw counters and histograms for Prometheus."""

from __future__ import annotations

from pathlib import Path

import click

from collectors.metrics.collection import MetricsCollection
from collectors.metrics.registry import ALL, DEFAULT_LEVELS, LEVELS, chosen_levels
from collectors.metrics.running_sums import PER_OCTAVE
from collectors.metrics.view import MetricLevel
from collectors.sources.live import WHOLE_TOPOLOGY_S, LiveSource
from engine.errors import UsageError
from tui.headless.metrics import require_textfile, serve, write_textfile
from tui.headless.metrics_server import DEFAULT_PORT, parse_address
from tui.options.numbers import DECIMAL, FROM_ONE
from tui.options.reading import PATIENCE_S, cost_option, reading_settings, root_options, tier_option
from tui.process.standard_streams import say

MOST_SERIES = 20_000


@click.command(short_help="raw counters and histograms for Prometheus")
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Replace FILE (*.prom) at every interval, for node_exporter's textfile collector.",
)
@click.option(
    "--listen",
    is_flag=False,
    flag_value=str(DEFAULT_PORT),
    metavar="[ADDRESS]",
    help=f"Answer scrapes on PORT of 127.0.0.1 ({DEFAULT_PORT}), ADDRESS:PORT, or unix:PATH.",
)
@click.option("--once", is_flag=True, help="Write the file once; counters of the kernel only.")
@click.option("--interval", type=DECIMAL, default=10.0, show_default=True, metavar="S", help="Seconds between samples.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    metavar="NAME,...",
    help=f"Of {', '.join(level.id for level in LEVELS)}, {ALL}. Default: {', '.join(DEFAULT_LEVELS)}.",
)
@click.option(
    "--max-series",
    type=FROM_ONE,
    default=MOST_SERIES,
    show_default=True,
    metavar="N",
    help="Refuse to start with more.",
)
@click.option(
    "--buckets-per-octave",
    type=click.Choice([str(number) for number in PER_OCTAVE]),
    default="2",
    show_default=True,
    help="Resolution of histograms.",
)
@click.option(
    "--node-names/--no-node-names",
    default=None,
    help="Export what has a name of node_exporter; default: with --listen, because beside it they are there already.",
)
@tier_option
@cost_option
@root_options
def command(
    *,
    textfile: Path | None,
    listen: str | None,
    once: bool,
    interval: float,
    levels: tuple[str, ...],
    max_series: int,
    buckets_per_octave: str,
    node_names: bool | None,
    tier: str,
    procfs: Path,
    sysfs: Path,
) -> None:
    """Export raw counters, states and latency histograms until a signal.

    --textfile opens no port. With --listen every scrape gets a new sample; other hosts can connect only if their
    address is named. Values that are missing have no series.

    docs/metrics.md lists all names, and has a dashboard for Grafana.
    """
    if (textfile is None) == (listen is None):
        raise UsageError("give --textfile FILE or --listen [ADDRESS], one of them")
    if once and textfile is None:
        raise UsageError("--once: only with --textfile")
    chosen = _levels(levels, once=once)
    if once and tier not in {"auto", "kernel"}:
        raise UsageError(f"--once: tier {tier} counts from the start of the process: leave --tier out")
    address = None if listen is None else parse_address(listen)
    if textfile is not None:
        require_textfile(textfile)
    own_names = textfile is None if node_names is None else node_names
    collection = MetricsCollection(chosen, per_octave=int(buckets_per_octave), node_names=own_names)

    def open_source() -> LiveSource:
        return LiveSource(
            interval,
            procfs,
            sysfs,
            "kernel" if once else tier,
            first_topology_s=WHOLE_TOPOLOGY_S,
            patience_s=PATIENCE_S,
            say=say,
            settings=reading_settings(),
        )

    if address is not None:
        serve(open_source, collection, address, most_series=max_series)
    elif textfile is not None:
        source = open_source()
        try:
            write_textfile(source, collection, textfile, most_series=max_series, once=once)
        finally:
            source.close()


def _levels(names: tuple[str, ...], *, once: bool) -> tuple[MetricLevel, ...]:
    """Chosen levels; with `once` without those whose counters begin with the process.

    Raises:
        UsageError: one of these was named.
    """
    chosen = chosen_levels(names)
    if not once:
        return chosen
    short = [level.id for level in chosen if level.of_process]
    if short and names and ALL not in names:
        raise UsageError(f"--once: {', '.join(short)}: counted from the start of the process: leave --once out")
    return tuple(level for level in chosen if not level.of_process)
