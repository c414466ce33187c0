"""The screen of NFS mounts: operations, the transports and verdict of the mount under the cursor, none at all."""

from __future__ import annotations

import pytest

from tests.app.nfs_samples import with_nfs, with_slow_calls
from tests.app.sources import ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text
from tui.screens.nfs import NfsView
from tui.widgets.grid.table import Grid


async def test_operations_transports_and_verdict() -> None:
    source = ListSource(with_nfs(make_samples(count=20)))
    async with on_stage(make_app(source), SIZES[-1]) as pilot:
        await play(pilot, source, 10)
        await pilot.press("f4")
        await pilot.pause()
        assert isinstance(pilot.app.screen, NfsView)
        text = screen_text(pilot)
        assert "2500" in next(line for line in text.splitlines() if "/mnt/fast all" in line) or "2.50k" in text
        assert all(name in text for name in ("/mnt/fast READ", "/mnt/fast WRITE", "/mnt/slow READ"))
        assert "transports unbalanced: the busiest of 4 sends 2.6 x their mean" in text
        assert all(f"/mnt/fast tcp {number}" in text for number in (1, 2, 3, 4))
        assert "/mnt/slow tcp" not in text
        assert "\x1b" not in text
        lines = text.splitlines()
        first = next(at for at, line in enumerate(lines) if "/mnt/fast all" in line)
        slow = next(at for at, line in enumerate(lines) if "/mnt/slow all" in line)
        await pilot.press("home", *(["down"] * (slow - first)))
        await pilot.pause()
        text = screen_text(pilot)
        assert "server or network slow: RTT 98.0 of 100.0 ms" in text
        assert "/mnt/slow tcp 1" in text
        assert "/mnt/fast tcp" not in text


@pytest.mark.slow
async def test_latencies_of_the_mount_operation_or_transport_under_the_cursor() -> None:
    source = ListSource(with_slow_calls(make_samples(count=20)))
    async with on_stage(make_app(source), SIZES[-1]) as pilot:
        await play(pilot, source, 10)
        await pilot.press("f4")
        await pilot.pause()
        text = screen_text(pilot)
        lines = text.splitlines()
        begin, read_at = (
            next(at for at, line in enumerate(lines) if name in line) for name in ("/mnt/fast all", "/mnt/fast READ")
        )
        # RTT and execute time, of which the largest is in the middle of its bucket.
        assert {"2.75", "3.00"} <= set(lines[read_at].split())
        await pilot.press("home", *(["down"] * (read_at - begin)), "i")
        await pilot.pause()
        assert "Latency of NFS /mnt/fast READ  whole time of all operations" in screen_text(pilot)
        assert "p99 3.00" in screen_text(pilot)
        called = [line for line in screen_text(pilot).splitlines() if " 0000" in line]
        assert called
        assert all("READ  " in line and "4711 dd" in line and line.rstrip(" │").endswith("0000cafe") for line in called)
        await pilot.press("f4")
        await pilot.pause()
        pilot.app.screen.query_one("#transports", Grid).focus()
        await pilot.pause()
        await pilot.press("i")
        await pilot.pause()
        assert "Latency of NFS /mnt/fast, transport " in screen_text(pilot)
