"""Notices in the corner of the screen, which go after a while."""

from __future__ import annotations

from textual.notifications import Notification

LEAST_LEFT_S = 0.1
"""Enough for a timer to be set before it is over."""


class Notice(Notification):
    """A notification whose time left can be given to a timer at any moment.

    Textual asks whether a notification has expired, and a little later how long to show it. Where it expires between
    the two, the time left is negative, and a Textual timer with a negative interval loops without ever yielding to
    the event loop: the app is dead from then on.
    """

    @property
    def time_left(self) -> float:
        """Seconds for which it is to be shown; never so few that a timer is late before it runs."""
        return max(LEAST_LEFT_S, super().time_left)

    @property
    def has_expired(self) -> bool:
        """Whether its time is over."""
        return super().time_left <= 0
