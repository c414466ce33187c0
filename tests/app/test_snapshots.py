"""How further views of the screens look, over frozen samples; test_every_screen has each screen and dialog."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.latency_samples import with_latencies
from tests.app.multipath import laptop_samples, multipath_samples
from tests.app.sources import ListRecording, ListSource, make_samples, with_load
from tests.app.stage import FROZEN, SIZES, make_app, past_read, peaks_read, rewind_to, screen_text, skip, until
from tests.app.taken import SnapCompare, assert_pictures
from tui.screens.latency.screen import LatencyScreen
from tui.text.glyphs import GlyphSetting

DRIVING_SIZES = ((60, 20), SIZES[0], (120, 40), SIZES[1])
JOB = JobSpec(
    targets=(TargetSpec("/dev/vdb"), TargetSpec("/dev/sdc")),
    knobs=Knobs(queue_depth=16, stripe_width=2, blocks=(BlockShare(8192),)),
)


def played(source: ListSource, *keys: str) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def run(pilot: Pilot[None]) -> None:
        if isinstance(source, ListRecording):
            await rewind_to(pilot, source, 90)
            await past_read(pilot, 90)
            await peaks_read(pilot)
        else:
            await skip(pilot, source, 40)
        await pilot.press(*keys[:1])
        await pilot.pause()
        if isinstance(source, ListRecording) and isinstance(pilot.app.screen, LatencyScreen):
            await until(pilot, lambda: "Peaks of the recording" in screen_text(pilot))
        await pilot.press(*keys[1:])
        await pilot.pause()
        await until(pilot, lambda: "checking" not in screen_text(pilot))
        if "L" in keys:
            await until(pilot, lambda: "read: allowed" in screen_text(pilot))

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("look", "keys"),
    [
        ("slots", ("o", "plus", "b", "O", "f")),
        ("job", ("e", "tab")),
        ("targets", ("L", "tab")),
    ],
)
async def test_driving(look: str, keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    source = ListSource(with_load(make_samples(count=40)))
    control = LoadControl()
    app = make_app(source, control, JOB)
    await assert_pictures(app, DRIVING_SIZES, played(source, "2", *keys), snap_compare)
    control.close()


@pytest.mark.parametrize(("look", "keys"), [("newest", ()), ("peak", ("n", "i")), ("zoomed", ("n", "m", *"++]"))])
async def test_latency(look: str, keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    source = ListRecording(with_latencies(make_samples(count=150)))
    await assert_pictures(make_app(source), SIZES, played(source, "4", *keys), snap_compare)


@pytest.mark.parametrize("glyphs", ["unicode", "ascii"])
def test_latency_in_sixteen_colours(glyphs: GlyphSetting, snap_compare: SnapCompare) -> None:
    source = ListRecording(with_latencies(make_samples(count=150)))
    app = make_app(source, settings=replace(FROZEN, theme="lunscope-ansi", glyphs=glyphs))
    assert snap_compare(app, terminal_size=SIZES[0], run_before=played(source, "4", "n"))


@pytest.mark.parametrize(
    ("screen", "keys"),
    [
        ("paths by port", ("5", "b")),
        ("paths that are not active", ("5", "n")),
        ("path", ("5", "x", "down", "enter")),
        ("port", ("5", "b", "d")),
    ],
)
async def test_multipath(screen: str, keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    app = make_app(source := ListSource(multipath_samples(40)))
    await assert_pictures(app, SIZES, played(source, *keys), snap_compare)


@pytest.mark.parametrize("keys", [("5",), ("6",), ("7",)])
def test_one_disk(keys: tuple[str, ...], snap_compare: SnapCompare) -> None:
    """A laptop: one disk, which is its own only path."""
    app = make_app(source := ListSource(laptop_samples(40)))
    assert snap_compare(app, terminal_size=SIZES[0], run_before=played(source, *keys))


async def test_replay(snap_compare: SnapCompare) -> None:
    source = ListRecording(make_samples(count=150))
    await assert_pictures(make_app(source), SIZES, played(source), snap_compare)


@pytest.mark.parametrize("screen", ["1", "2", "4"])
async def test_rewound(screen: str, snap_compare: SnapCompare) -> None:
    """A live host, some time back."""
    source = ListSource(with_latencies(make_samples(count=40)))
    control = LoadControl()
    app = make_app(source, control, JOB)
    keys = (screen, *["comma"] * 26, "full_stop", "full_stop")
    await assert_pictures(app, SIZES, played(source, *keys), snap_compare)
    control.close()


def test_monochrome(snap_compare: SnapCompare) -> None:
    source = ListSource(make_samples(count=40))
    app = make_app(source, settings=replace(FROZEN, theme="lunscope-ansi", glyphs="ascii"))
    assert snap_compare(app, terminal_size=SIZES[0], run_before=played(source))
