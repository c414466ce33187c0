"""What the screens are started with: one value from the verb to the app, whose state begins with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, field

from tui.sweep.series import SweepSeries

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.fleet.fleet_source import HostOrFleet
    from collectors.model import Source
    from engine.events import Event
    from tui.compare_asked import CompareAsked
    from tui.load.fleet_load_controller import FleetLoadController
    from tui.load.load_controller import LoadController


class Recording(Protocol):
    """A session file that is being written."""

    @property
    def path(self) -> str:
        """Path of the file."""

    @property
    def size_bytes(self) -> int:
        """Bytes written."""

    @property
    def trouble(self) -> str:
        """Why recording stopped, in one line; empty while it works."""

    def add_event(self, event: Event) -> None:
        """Record an event outside any sample; does not wait."""

    def finish(self) -> None:
        """Complete the file without waiting for its source."""


class AppInput(Struct, eq=False):
    """What is shown, driven and recorded; the verb makes it."""

    source: Source
    controller: LoadController | None = None
    """None if no load can be driven: watching only, or replaying."""
    recording: Recording | None = None
    autostart: bool = False
    """Whether the load is started as soon as its screen is there."""
    sweeps: SweepSeries = field(default_factory=SweepSeries)
    """What this process measures and measured, which begins on its screen; empty in a replay."""
    compared: CompareAsked | None = None
    """What `lunscope compare --screen` was asked for."""
    alert_service: AlertService | None = None
    """The rules of alerts; None in a replay."""
    fleet: HostOrFleet | None = None
    """The hosts of a fleet; None where one host is watched, and in a replay."""
    fleet_load: FleetLoadController | None = None
    """The load over the hosts of a fleet; None if there is none."""
    first_screen: str | None = None
    """Id of the tab to begin with; None for what the other fields suggest."""
    tune_root: Path | None = None
    """The sysfs whose tunables may be changed; None where none may, as in a replay."""
    is_summed_up: bool = False
    """Whether what was seen is printed at the end, in some lines."""
