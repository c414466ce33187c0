"""Knobs that can be had again: those before each turn, and two sets that are stored and flipped."""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise

from msgspec import Struct

from engine.job.knobs import Knobs

MOST_TURNS = 200


class KnobSlot(StrEnum):
    """Holds one set of knobs."""

    A = "A"
    B = "B"

    @property
    def other(self) -> KnobSlot:
        """The other one."""
        return KnobSlot.B if self is KnobSlot.A else KnobSlot.A


class Flip(Struct, frozen=True):
    """A turn from the knobs of one slot to those of the other."""

    from_slot: KnobSlot
    to_slot: KnobSlot
    before: Knobs
    after: Knobs

    @property
    def title(self) -> str:
        """As in "A -> B"."""
        return f"{self.from_slot} -> {self.to_slot}"


class KnobMemory:
    """Remembers knobs and turns none; used by the event loop alone."""

    def __init__(self) -> None:
        self._before: list[Knobs] = []
        self._slots: dict[KnobSlot, Knobs] = {}
        self._last: KnobSlot | None = None
        """The slot last stored or flipped to."""
        self.last_flip: Flip | None = None
        """The last turn, if that was a flip."""

    def turned(self, before: Knobs) -> None:
        """Note the knobs before a turn."""
        self.last_flip = None
        self._before = [*self._before, before][-MOST_TURNS:]

    def before(self, now: Knobs) -> Knobs | None:
        """Return the knobs before the last turn that had an effect; None if there are none."""
        while self._before and self._before[-1] == now:
            self._before.pop()
        return self._before[-1] if self._before else None

    def undone(self) -> None:
        """Drop the knobs that `before` returned: they are in force again."""
        self.last_flip = None
        self._before.pop()

    def steps_back(self, now: Knobs) -> int:
        """Count the turns that can be taken back."""
        return sum(earlier != later for earlier, later in pairwise([*self._before, now]))

    def forget_turns(self) -> None:
        """Drop them: they were of another job. What is stored in slots stays."""
        self._before = []

    def store(self, slot: KnobSlot, knobs: Knobs) -> None:
        """Store knobs in a slot."""
        self._slots[slot] = knobs
        self._last = slot

    def stored(self, slot: KnobSlot) -> Knobs | None:
        """Return what is in a slot; None if nothing is."""
        return self._slots.get(slot)

    def in_force(self, now: Knobs) -> KnobSlot | None:
        """Find the slot whose knobs are these, the one flipped to last if both are."""
        slots = [slot for slot in KnobSlot if self._slots.get(slot) == now]
        return self._last if self._last in slots else next(iter(slots), None)

    def next_slot(self, now: Knobs) -> KnobSlot | None:
        """Choose the slot to flip to: the other one of that in force or used last; None if no other is stored."""
        here = self.in_force(now)
        used = here or self._last
        wanted = KnobSlot.A if used is None else used.other
        if wanted in self._slots:
            return wanted
        return None if here is not None else next(iter(self._slots), None)

    def flipped(self, slot: KnobSlot, before: Knobs, after: Knobs) -> None:
        """Note that the knobs of a slot were taken."""
        here = self.in_force(before)
        self.turned(before)
        self._last = slot
        self.last_flip = None if here is None else Flip(here, slot, before, after)
