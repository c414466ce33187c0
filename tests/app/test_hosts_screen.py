"""The Hosts screen of a fleet in use: hosts that are not as they should be are named with the reason."""

from __future__ import annotations

import time

from collectors.fleet.fleet_source import HostOrFleet
from tests.app.fleet_samples import with_hosts
from tests.app.sources import ListSource, make_samples
from tests.app.stage import FROZEN, play, screen_text
from tests.unit.fleet.made_hosts import ahead, fleet_of, old, slow
from tui.app import LunscopeApp


async def test_odd_hosts_are_named_on_the_screen() -> None:
    controller = fleet_of("db1", "db2", "db3")
    ahead(controller, "db1")
    slow(controller, "db2")
    old(controller, "db3")
    controller._judge(time.monotonic())
    source = ListSource(with_hosts(make_samples(count=5)))
    app = LunscopeApp(source, settings=FROZEN, fleet=HostOrFleet(source, controller))
    async with app.run_test(size=(120, 40)) as pilot:
        await play(pilot, source, 5)
        await pilot.pause()
        text = screen_text(pilot)
    assert "db1 (clock)" in text
    assert "s ahead" in text
    assert "db2 (slow)" in text
    assert "round trip 2" in text
    assert "db3: failed: lunscope 0.9 there speaks version" in text
