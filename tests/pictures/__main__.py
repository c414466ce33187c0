"""`make pictures`: SVGs of the screens for the README and the documents; the same samples make the same pictures.

Those of paths are of a recording of a guest with multipath; the others of a recording that is written first, of samples
with a load whose latencies double half way. Only the load screen is shown live: it has its keys there.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from textual.app import App
from textual.pilot import Pilot

from collectors.derive.percentiles import bucket_midpoints_ns
from collectors.model import Sample
from collectors.session.writer import SessionWriter
from collectors.sources.replay import ReplaySource
from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.latency_samples import with_latencies
from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.settings import Settings
from tui.theming import DEFAULT_THEME

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "docs" / "pictures"
PATHS = HERE.parent / "recordings" / "multipath.luns"
SETTINGS = Settings(theme=DEFAULT_THEME, glyphs="unicode", theme_folder=Path("/nonexistent"))
JOB = JobSpec(
    targets=(TargetSpec("/dev/vdb"), TargetSpec("/dev/sdc")),
    knobs=Knobs(queue_depth=16, stripe_width=2, blocks=(BlockShare(8192),)),
)
SECONDS = 150
PATIENCE_S = 60.0
QUIET_S = 0.3


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture; `recording` is empty for the load screen, which is live."""

    name: str
    recording: str
    at_s: float
    """After the start of the recording."""
    keys: tuple[str, ...]
    size: tuple[int, int] = (120, 36)


PICTURES = (
    Picture("overview", "load", 100, ("1",)),
    Picture("load", "", 0, ("2",)),
    Picture("latency", "load", 130, ("4", "n")),
    Picture("paths", str(PATHS), 6, ("5", "x"), (120, 26)),
    Picture("tree", str(PATHS), 6, ("6", "x", "x", "x", "x"), (120, 26)),
)


def samples() -> Sequence[Sample]:
    """Make what is recorded: the synthetic samples of the tests, with mean latencies that fit their histograms."""
    made, ios, latency_ns = list[Sample](), np.zeros(2), np.zeros(2)
    for sample in with_latencies(make_samples(count=SECONDS)):
        load, cells = sample.tables["load"], sample.histograms["load"]
        middle_ns = bucket_midpoints_ns(cells.scale, cells.bucket)
        mean_ns = [np.average(middle_ns[cells.row == row], weights=cells.count[cells.row == row]) for row in range(2)]
        reads = load.column("read_ios").astype(float)
        latency_ns, ios = latency_ns + np.array(mean_ns) * (reads - ios), reads
        values = load.values.copy()
        values[:, load.schema.index("read_latency_ns")] = latency_ns.astype(np.uint64)
        made.append(replace(sample, tables={**sample.tables, "load": replace(load, values=values)}))
    return made


def write_recording(path: Path) -> None:
    """Write the samples to a session file."""
    with SessionWriter(path) as writer:
        for sample in samples():
            writer.write(sample)


async def picture(wanted: Picture, folder: Path) -> str:
    """Draw one picture of a recording in a folder; returns the SVG."""
    if not wanted.recording:
        return await _live_picture(wanted)
    path = Path(wanted.recording) if "/" in wanted.recording else folder / f"{wanted.recording}.luns"
    source = ReplaySource(path)
    source.pause(True)
    app = LunscopeApp(AppInput(source), settings=SETTINGS)
    async with app.run_test(size=wanted.size) as pilot:
        moment_ns = source.start_ns + round(wanted.at_s * 1e9)
        source.seek(moment_ns)
        await _until(pilot, lambda: _shown_ns(app) >= moment_ns - 1_500_000_000 and not source.is_moving)
        await _until(pilot, lambda: app._shown_share == 1)
        return await _after_keys(pilot, wanted)


async def _live_picture(wanted: Picture) -> str:
    shown = samples()
    source, control = ListSource(shown), LoadControl()
    app = make_app(source, control, JOB, settings=SETTINGS)
    async with app.run_test(size=wanted.size) as pilot:
        source.advance(SECONDS * 2 // 3)
        await _until(pilot, lambda: app.app_state.latest_ns == shown[source.released - 1].time_ns)
        svg = await _after_keys(pilot, wanted)
    control.close()
    return svg


async def _after_keys(pilot: Pilot[None], wanted: Picture) -> str:
    await _settled(pilot)
    for key in wanted.keys:
        await pilot.press(key)
        await _settled(pilot)
    return pilot.app.export_screenshot(title=f"lunscope: {wanted.name}")


def _shown_ns(app: LunscopeApp) -> int:
    return app.app_state.frame.time_ns if app.app_state.frame else 0


async def _settled(pilot: Pilot[None]) -> None:
    """Wait until nothing that is drawn changes any more: histories are read by threads."""
    app: App[None] = pilot.app
    before, deadline_s = "", time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        await pilot.pause(QUIET_S)
        now = app.export_screenshot()
        if now == before:
            return
        before = now


async def _until(pilot: Pilot[None], condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise SystemExit("the screen never showed the moment that is wanted")
        await pilot.pause(0.05)


async def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        write_recording(Path(place) / "load.luns")
        for wanted in PICTURES:
            path = folder / f"{wanted.name}.svg"
            path.write_text(await picture(wanted, Path(place)) + "\n", encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    os.environ["TZ"] = "UTC"
    time.tzset()
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER))
