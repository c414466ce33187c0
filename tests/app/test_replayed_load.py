"""A recording on the screens: knobs as they stood, peaks of the whole file, the effect of turns."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from collectors.model import Sample, Tier
from engine.events import Event, EventKind
from engine.job.file import dump_job
from engine.job.spec import JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from tests.app.latency_samples import with_latencies
from tests.app.sources import SECOND_NS, ListRecording, make_samples, with_load
from tests.app.stage import make_app, on_stage, rewind_to, screen_text, until
from tui.widgets.knobs import EffectPanel

JOB = JobSpec((TargetSpec("/dev/vdb"), TargetSpec("/dev/sdc")), Knobs(queue_depth=8, stripe_width=2))


def with_start(samples: list[Sample]) -> list[Sample]:
    """The samples with the start of their load as an event."""
    first = samples[0]
    data = {"backend": "uring", "job": dump_job(JOB)}
    start = Event(EventKind.LOAD, "load started", first.time_ns, first.monotonic_ns, data)
    return [replace(first, events=(start, *first.events)), *samples[1:]]


async def panel_at(pilot: Pilot[None], source: ListRecording, position: int, words: str) -> str:
    await rewind_to(pilot, source, position)
    panel = pilot.app.screen.query_one(EffectPanel)
    await until(pilot, lambda: words in panel.content.plain)
    return panel.content.plain


@pytest.mark.slow
async def test_knobs_are_those_of_the_moment_and_have_no_keys() -> None:
    source = ListRecording(with_start(with_load(make_samples(count=40))))
    async with on_stage(make_app(source)) as pilot:
        await pilot.press("2")
        await rewind_to(pilot, source, 10)
        await until(pilot, lambda: "2 of 2" in screen_text(pilot))
        assert "Replay: recorded load (read-only)" in screen_text(pilot)
        assert " 8 " in screen_text(pilot).splitlines()[3]
        await rewind_to(pilot, source, 35)
        await until(pilot, lambda: " 16 " in screen_text(pilot).splitlines()[3])


@pytest.mark.slow
async def test_the_effect_does_not_depend_on_the_way_to_a_moment() -> None:
    source = ListRecording(with_start(with_load(make_samples(count=200))))
    async with on_stage(make_app(source)) as pilot:
        await pilot.press("2")
        forward = await panel_at(pilot, source, 150, "48 s before | 48 s after")
        assert "queue depth 8 -> 16" in forward
        await panel_at(pilot, source, 50, "effect of the next knob turn")
        assert await panel_at(pilot, source, 199, "60 s before | 60 s after")
        assert await panel_at(pilot, source, 150, "48 s before | 48 s after") == forward


@pytest.mark.slow
async def test_the_next_peak_is_of_the_whole_recording() -> None:
    """The largest peaks lie behind the cursor, which never was there."""
    source = ListRecording(with_latencies(make_samples(count=150)))
    async with on_stage(make_app(source), (110, 40)) as pilot:
        await rewind_to(pilot, source, 20)
        await pilot.press("4")
        await until(pilot, lambda: "Peaks of the recording" in screen_text(pilot))
        await pilot.press("n")
        end_ns = source.samples[0].time_ns + 144 * SECOND_NS
        app = pilot.app
        await until(pilot, lambda: source.position_ns == end_ns)
        await until(pilot, lambda: "peak 34.4 ms" in screen_text(pilot))
        assert app.is_running


@pytest.mark.parametrize("tier", [Tier.EXACT, Tier.SAMPLED])
async def test_the_first_sample_blames_the_tier_only_where_it_is_at_fault(tier: Tier) -> None:
    samples = [
        replace(sample, topology=replace(sample.topology, host=replace(sample.topology.host, tier=tier)))
        for sample in make_samples(count=5)
    ]
    async with on_stage(make_app(ListRecording(samples)), (150, 40)) as pilot:
        await pilot.press("4", "i")
        await until(pilot, lambda: "first sample begins the first interval" in screen_text(pilot))
        blamed = "exact tier"
        if tier is not Tier.EXACT:
            await until(pilot, lambda: blamed in screen_text(pilot))
        await pilot.pause(0.2)
        assert (blamed in screen_text(pilot)) is (tier is not Tier.EXACT)
