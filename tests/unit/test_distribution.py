from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.job.distribution import (
    Distribution,
    Normal,
    Pareto,
    Permutation,
    Uniform,
    Zipf,
    Zone,
    Zones,
    distribution_problem,
    hot_and_cold,
    locality,
)
from engine.job.distribution_text import format_distribution, parse_distribution


def test_very_many_shares_are_refused() -> None:
    with pytest.raises(UsageError, match="1000 shares: give 1 to 256"):
        parse_distribution("locality:" + ",".join(["0.1"] * 1000))


def test_a_locality_table_has_equal_slices_and_forgives_rounding() -> None:
    thirds = locality([33.3, 33.3, 33.3])
    assert [zone.space_pct for zone in thirds.zones] == [100 / 3] * 3
    assert math.isclose(sum(zone.ios_pct for zone in thirds.zones), 100)
    with pytest.raises(UsageError, match="0 shares"):
        locality([])


_ZONES = st.lists(st.integers(1, 50), min_size=1, max_size=6).map(
    lambda weights: Zones(
        tuple(
            Zone(100 * weight / sum(weights), 100 * other / sum(weights))
            for weight, other in zip(weights, weights[::-1], strict=True)
        )
    )
)
DISTRIBUTIONS = st.one_of(
    st.sampled_from([Uniform(), Permutation()]),
    st.floats(0.01, 10).map(Zipf),
    st.floats(0.01, 0.99).map(Pareto),
    st.builds(Normal, st.floats(0.01, 100), st.floats(0, 100)),
    _ZONES,
    st.sampled_from(
        [hot_and_cold(90, 10), hot_and_cold(100, 30), locality([50, 30, 20]), locality([33.3, 33.3, 33.4])]
    ),
)


@given(DISTRIBUTIONS)
def test_distributions_round_trip(distribution: Distribution) -> None:
    assert not distribution_problem(distribution)
    assert parse_distribution(format_distribution(distribution)) == distribution


def test_numbers_are_flat() -> None:
    assert Uniform().numbers == ()
    assert Normal(10, 20).numbers == (10.0, 20.0)
    assert Zones((Zone(60, 10), Zone(40, 90))).numbers == (60.0, 10.0, 40.0, 90.0)
