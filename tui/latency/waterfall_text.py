"""The waterfall of the load as bars and text."""

from __future__ import annotations

from collections.abc import Iterator

from textual.content import Content

from collectors.latency.load_waterfall import LoadWaterfall
from collectors.latency.waterfall import MatchedIo, Stage, Waterfall
from engine.text import safe_text
from tui.text.clock import precise_clock
from tui.text.glyphs import Glyphs
from tui.widgets.heatmap.text import latency_text

_STYLES = {
    Stage.SUBMIT: "$write",
    Stage.TAG: "$peak",
    Stage.QUEUE: "$queue",
    Stage.SERVICE: "$service",
    Stage.REAP: "$busy",
    Stage.OUTSIDE: "$muted",
}
_BAR_OF_IO = 24


def waterfall_lines(waterfall: LoadWaterfall, width: int, glyphs: Glyphs) -> Content:
    """Draw the mean as one bar with its dominant stage, and below it the slowest I/Os, each with its own."""
    return Content("\n").join([*_mean_lines(waterfall, width, glyphs), *_io_lines(waterfall, glyphs)])


def _mean_lines(waterfall: LoadWaterfall, width: int, glyphs: Glyphs) -> Iterator[Content]:
    mean = waterfall.mean
    if mean is None:
        yield Content.assemble((" Waterfall, no mean: ", "bold"), waterfall.caveat)
        return
    yield Content.assemble((f" Waterfall, mean {latency_text(mean.total_ns)}: ", "bold"), mean.verdict())
    yield Content.assemble(" ", *_bar(mean, width - 2, glyphs))
    parts = [
        (f" {glyphs.stages[stage]} {stage} {latency_text(time_ns)}, {100 * mean.share(stage):.0f} % ", _STYLES[stage])
        for stage, time_ns in mean.parts
    ]
    yield Content.assemble(*parts, (f" {waterfall.caveat}", "italic"))


def _io_lines(waterfall: LoadWaterfall, glyphs: Glyphs) -> Iterator[Content]:
    if not waterfall.slowest:
        return
    yield Content.assemble((" Slowest I/Os seen from both sides", "bold"))
    for one in waterfall.slowest:
        yield Content.assemble(*_io_head(one), *_bar(one.waterfall, _BAR_OF_IO, glyphs), *_io_parts(one, glyphs))


def _io_head(one: MatchedIo) -> Iterator[tuple[str, str] | str]:
    yield f" {precise_clock(one.load.issued_ns + one.load.latency_ns)} "
    yield f"{latency_text(one.load.latency_ns):>9} ", "bold"


def _io_parts(one: MatchedIo, glyphs: Glyphs) -> Iterator[tuple[str, str] | str]:
    for stage, time_ns in one.waterfall.parts:
        if one.waterfall.share(stage) >= 0.01:
            yield f"  {glyphs.stages[stage]} {stage} {latency_text(time_ns)}", _STYLES[stage]
    yield f"  {safe_text(one.load.name).partition(' (')[0]} {one.load.direction} at {one.load.offset}"


def _bar(waterfall: Waterfall, width: int, glyphs: Glyphs) -> Iterator[tuple[str, str]]:
    """Divide a bar by the shares; every stage above zero gets a cell if there is room."""
    shares = [waterfall.share(stage) for stage, _ in waterfall.parts]
    edges = [round(sum(shares[:number]) * width) for number in range(len(shares) + 1)]
    for (stage, _), start, end in zip(waterfall.parts, edges, edges[1:], strict=False):
        yield glyphs.stages[stage] * (end - start), _STYLES[stage]
