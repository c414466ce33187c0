"""Losses of the exact tier, told in words where they matter."""

from __future__ import annotations

from collectors.exact.losses import TELL_EVERY_NS, LossReporter


def test_losses_that_matter_are_told_once_a_minute() -> None:
    reporter = LossReporter()
    assert reporter.report({"stale": 7}, 1_000, 0) == ()
    (event,) = reporter.report({"stale": 107}, 11_000, 1)
    assert event.text == "exact time: beside 10,000 I/Os 100 were not seen to end"
    assert reporter.report({"stale": 900}, 12_000, 2) == ()
    assert reporter.report({"stale": 900}, 13_000, 2 + TELL_EVERY_NS)


def test_when_so_many_are_lost_that_the_next_tier_serves_it_is_told() -> None:
    reporter = LossReporter()
    reporter.report({}, 0, 0)
    (event,) = reporter.report({"table_full": 100}, 1_000, 1)
    assert event.text == (
        "exact time: beside 1,000 I/Os 100 found no room among those under way; "
        "while it loses so many, figures are those of the next tier"
    )


def test_losses_too_few_to_change_a_figure_are_not_told() -> None:
    reporter = LossReporter()
    reporter.report({}, 0, 0)
    assert reporter.report({"stale": 1}, 10_000, 1) == ()


def test_a_device_that_left_with_its_count_makes_no_negative_share() -> None:
    reporter = LossReporter()
    reporter.report({"stale": 0}, 50_000, 0)
    assert reporter.report({"stale": 3}, 40_000, 1) == ()
