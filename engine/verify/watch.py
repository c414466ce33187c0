"""Notes damage that the reads of a running load meet, as it comes up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.events import EventKind
from engine.running.board import Board

if TYPE_CHECKING:
    from engine.running.driver import LoadDriver

_MOST_EVENTS = 50
"""Beyond it damage is counted only: a target that is all wrong would drown everything else."""


class DamageWatch:
    """Compares what is damaged with what was told before."""

    def __init__(self) -> None:
        self._told = 0

    def observe(self, driver: LoadDriver, board: Board) -> None:
        """Look once; new damage is an event and counted on the board."""
        if driver.damaged_ranges() == self._told:
            return
        verified = driver.verified()
        found = [] if verified is None else [(target.name, one) for target in verified.targets for one in target.damage]
        board.change(damaged=len(found))
        for name, one in found[self._told : _MOST_EVENTS]:
            board.note(
                EventKind.LOAD, f"{name}: {one.text}", {"damaged": name, "damage": one.kind.value, "offset": one.offset}
            )
        self._told = len(found)
