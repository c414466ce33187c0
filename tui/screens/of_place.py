"""The screens by their places; each is imported when it is first shown, as the first picture waits for none of them."""

from __future__ import annotations

from importlib import import_module

from tui.keys import Place
from tui.scope import Scope
from tui.screens.base import View
from tui.screens.overview import OverviewScreen

SCREENS = (Place.OVERVIEW, Place.LOAD, Place.EVENTS, Place.LATENCY, Place.PATHS, Place.TREE, Place.WALL)
"""Places that are screens of their own, in the order of their keys."""

_LATER = {
    Place.EVENTS: "EventsScreen",
    Place.LATENCY: "LatencyScreen",
    Place.PATHS: "PathsScreen",
    Place.TREE: "TreeScreen",
    Place.WALL: "WallScreen",
}
"""Classes in the modules that have the names of their places."""


def make_screen(place: Place, scope: Scope, *, autostart: bool) -> View:
    """Make the screen of a place; `autostart` lets the load begin where the screen drives one."""
    if place is Place.OVERVIEW:
        return OverviewScreen(scope)
    if place is Place.LOAD:
        from tui.screens.load import LoadScreen  # noqa: PLC0415 - see above

        return LoadScreen(scope, autostart=autostart)
    screen: type[View] = getattr(import_module(f"tui.screens.{place.value}"), _LATER[place])
    return screen(scope)
