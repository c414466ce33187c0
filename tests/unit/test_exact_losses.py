"""Losses of the exact tier, said in words where they matter."""

from __future__ import annotations

from collectors.exact.losses import TELL_EVERY_NS, LossReporter, loss_lines
from collectors.model import Rows
from collectors.rates import derive
from tests.unit.traced_samples import traced_sample


def test_losses_that_matter_are_reported_once_a_minute() -> None:
    reporter = LossReporter()
    assert reporter.report({"stale": 7}, 1_000, 0) == ()
    (event,) = reporter.report({"stale": 107}, 11_000, 1)
    assert event.text == "exact time: of 10,100 I/Os 100 missed at completion"
    assert reporter.report({"stale": 900}, 12_000, 2) == ()
    assert reporter.report({"stale": 900}, 13_000, 2 + TELL_EVERY_NS)


def test_when_so_many_are_lost_that_the_next_tier_serves_it_is_reported() -> None:
    reporter = LossReporter()
    reporter.report({}, 0, 0)
    (event,) = reporter.report({"table_full": 100}, 1_000, 1)
    assert event.text == (
        "exact time: of 1,100 I/Os 100 not tracked (table full); "
        "while it loses so many, figures but busy time and maxima are those of the next tier"
    )


def test_losses_too_few_to_change_a_figure_are_not_reported() -> None:
    reporter = LossReporter()
    reporter.report({}, 0, 0)
    assert reporter.report({"stale": 1}, 10_000, 1) == ()


def test_a_device_that_left_with_its_count_makes_no_negative_share() -> None:
    reporter = LossReporter()
    reporter.report({"stale": 0}, 50_000, 0)
    assert reporter.report({"stale": 3}, 40_000, 1) == ()


def test_every_count_is_listed_with_its_meaning() -> None:
    losses = {"table_full": 0, "stale": 12_345, "recursion_misses": 7}
    assert list(loss_lines(losses)) == [
        "           0  not tracked (table full)",
        "      12,345  missed at completion",
        "           7  runs of a program the kernel skipped",
    ]


def test_a_frame_tells_what_was_lost_so_far() -> None:
    frame = derive(None, traced_sample(1, Rows(("sda:8:0#1",), ("sda",)), {}, losses={"unseen": 5, "healed": 0}))
    assert (frame.losses["unseen"], frame.losses["healed"]) == (5, 0)
    assert not frame.losses.keys() & {"clock_ns", "started_ns", "tag_wait_on"}
