"""Screens of what a host or a recording does not have say so."""

from __future__ import annotations

from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import make_app, on_stage, play, rewind_to, screen_text
from tui.screens.nfs import NfsView

LACKED_BY_HOSTS = {
    "h": "no cache here",
    "f4": "no NFS mount here",
    "8": "no I/O accounting of control groups here: neither io (v2) nor blkio (v1)",
}
LACKED_BY_RECORDINGS = {"h": "this recording holds no caches", "8": "this recording holds no control groups"}


async def test_what_a_host_does_not_have_is_said() -> None:
    source = ListSource(make_samples(count=20))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        for key, words in LACKED_BY_HOSTS.items():
            await pilot.press(key)
            await pilot.pause()
            assert words in screen_text(pilot)
            await pilot.press("escape")
        await pilot.press("f4", "1")
        await pilot.pause()
        assert not isinstance(pilot.app.screen, NfsView), "the key of the screen below closes the page"


async def test_what_a_recording_does_not_have_is_said() -> None:
    source = ListRecording(make_samples(count=20))
    async with on_stage(make_app(source)) as pilot:
        await rewind_to(pilot, source, 10)
        for key, words in LACKED_BY_RECORDINGS.items():
            await pilot.press(key)
            await pilot.pause()
            assert words in screen_text(pilot)
            assert "waiting" not in screen_text(pilot)
            await pilot.press("escape")
