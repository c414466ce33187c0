"""Knobs that can be had again: turns taken back one by one, two slots, and steps of three sizes."""

from __future__ import annotations

import pytest

from engine.job.knobs import Knobs, StepContext, StepSize
from engine.job.spec import MAX_QUEUE_DEPTH, BlockShare
from engine.replacing import replace
from tui.load.knob_memory import MOST_TURNS, KnobMemory, KnobSlot
from tui.screens.load.actions import TURNS

ONE, TWO, FOUR = Knobs(), Knobs(queue_depth=2), Knobs(queue_depth=4)


def test_turns_come_back_in_reverse_and_those_without_effect_are_skipped() -> None:
    memory = KnobMemory()
    assert memory.before(ONE) is None
    memory.turned(ONE)
    memory.turned(TWO)
    memory.turned(FOUR)  # It was refused: the knobs are still these.
    assert memory.steps_back(FOUR) == 2
    assert memory.before(FOUR) == TWO
    memory.undone()
    assert memory.before(TWO) == ONE
    memory.undone()
    assert memory.before(ONE) is None
    assert memory.steps_back(ONE) == 0


def test_the_oldest_turns_are_dropped_and_another_job_drops_all() -> None:
    memory = KnobMemory()
    for depth in range(1, MOST_TURNS + 10):
        memory.turned(Knobs(queue_depth=depth))
    assert memory.steps_back(Knobs(queue_depth=MOST_TURNS + 10)) == MOST_TURNS
    memory.store(KnobSlot.A, ONE)
    memory.forget_turns()
    assert memory.before(TWO) is None
    assert memory.stored(KnobSlot.A) == ONE


def test_a_flip_goes_to_the_other_slot_also_after_further_turns() -> None:
    memory = KnobMemory()
    assert memory.next_slot(ONE) is None
    memory.store(KnobSlot.A, ONE)
    assert memory.next_slot(ONE) is None
    assert memory.next_slot(TWO) is KnobSlot.A
    memory.store(KnobSlot.B, TWO)
    assert (memory.in_force(ONE), memory.in_force(TWO), memory.in_force(FOUR)) == (KnobSlot.A, KnobSlot.B, None)
    assert (memory.next_slot(ONE), memory.next_slot(TWO)) == (KnobSlot.B, KnobSlot.A)
    memory.flipped(KnobSlot.A, TWO, ONE)
    assert memory.last_flip is not None
    assert memory.last_flip.title == "B -> A"
    memory.turned(ONE)
    assert memory.last_flip is None
    assert memory.next_slot(FOUR) is KnobSlot.B


def turn(name: str, size: StepSize, knobs: Knobs, iops: float | None = None, targets: int = 4) -> Knobs:
    return TURNS[name].turned(knobs, StepContext(targets, iops, size=size))


@pytest.mark.parametrize(
    ("name", "size", "field", "before", "after"),
    [
        ("queue_depth_up", StepSize.FINE, "queue_depth", 8, 9),
        ("queue_depth_down", StepSize.FINE, "queue_depth", 1, 1),
        ("queue_depth_up", StepSize.FINE, "queue_depth", MAX_QUEUE_DEPTH, MAX_QUEUE_DEPTH),
        ("queue_depth_up", StepSize.COARSE, "queue_depth", 8, 16),
        ("stripe_width_up", StepSize.FINE, "stripe_width", 1, 2),
        ("stripe_width_up", StepSize.COARSE, "stripe_width", 1, 4),
        ("stripe_width_down", StepSize.COARSE, "stripe_width", 3, 1),
        ("read_share_down", StepSize.FINE, "read_pct", 100.0, 99.0),
        ("read_share_down", StepSize.COARSE, "read_pct", 90.0, 50.0),
        ("rate_up", StepSize.FINE, "rate_iops", 1000.0, 1100.0),
        ("rate_down", StepSize.FINE, "rate_iops", 1.0, 1.0),
        ("rate_down", StepSize.COARSE, "rate_iops", 5000.0, 1000.0),
        ("rate_up", StepSize.COARSE, "rate_iops", 1_000_000.0, None),
        ("threads_up", StepSize.FINE, "threads", 8, 9),
        ("threads_up", StepSize.COARSE, "threads", 3, 4),
        ("block_size_up", StepSize.FINE, "blocks", (BlockShare(8192),), (BlockShare(12288),)),
        ("block_size_down", StepSize.FINE, "blocks", (BlockShare(4096),), (BlockShare(3584),)),
        ("block_size_up", StepSize.COARSE, "blocks", (BlockShare(4096),), (BlockShare(16384),)),
        ("block_size_down", StepSize.FINE, "blocks", (BlockShare(512),), (BlockShare(512),)),
    ],
)
def test_steps_of_other_sizes(name: str, size: StepSize, field: str, before: object, after: object) -> None:
    stepped = getattr(turn(name, size, replace(Knobs(), **{field: before})), field)  # type: ignore[arg-type]
    assert stepped == after
    assert type(stepped) is type(after)


def test_a_fine_rate_begins_at_what_the_load_does_and_a_mix_is_halved() -> None:
    assert turn("rate_down", StepSize.FINE, Knobs(), 1234.4).rate_iops == 1234
    mix = Knobs(blocks=(BlockShare(4096, 50), BlockShare(8192, 50)))
    assert [share.block_bytes for share in turn("block_size_down", StepSize.FINE, mix).blocks] == [2048, 4096]


def test_every_knob_steps_in_every_size() -> None:
    for name in TURNS:
        for size in StepSize:
            assert isinstance(turn(name, size, Knobs(queue_depth=8, stripe_width=2)), Knobs)
