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


@pytest.mark.parametrize(
    ("text", "distribution"),
    [
        ("uniform", Uniform()),
        ("Permutation", Permutation()),
        ("zipf:1.1", Zipf(1.1)),
        (" pareto:0.2 ", Pareto(0.2)),
        ("normal:10", Normal(10.0, 50.0)),
        ("normal:10%:30%", Normal(10.0, 30.0)),
        ("hot:90/10", Zones((Zone(90.0, 10.0), Zone(10.0, 90.0)))),
        ("hot:50/1", hot_and_cold(50, 1)),
        ("locality:50,50", Zones((Zone(50.0, 50.0), Zone(50.0, 50.0)))),
        ("zones:60/10, 0/20, 40/70", Zones((Zone(60.0, 10.0), Zone(0.0, 20.0), Zone(40.0, 70.0)))),
    ],
)
def test_what_people_write(text: str, distribution: Distribution) -> None:
    assert parse_distribution(text) == distribution


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "'' is no distribution: use one of uniform, permutation, zipf"),
        ("zipf", "'zipf' cannot be read: write it like zipf:1.1"),
        ("zipf:0", "the exponent 0 is out of range: above 0 up to 10"),
        ("zipf:nan", "the exponent nan is out of range"),
        ("zipf:1e400", "the exponent inf is out of range"),
        ("uniform:3", "cannot be read: write it like uniform"),
        ("pareto:1", "the share 1 is out of range: above 0 and below 1"),
        ("normal:0", "the deviation 0 % is out of range"),
        ("normal:5:101", "the centre 101 % is out of range: 0 to 100"),
        ("normal:5:5:5", "cannot be read"),
        ("hot:100/10", "both shares must be above 0 and below 100 %"),
        ("hot:90", "cannot be read: write it like hot:90/10"),
        ("locality:50,40", "the shares of the I/Os add up to 90 %, not 100"),
        ("locality:150,-50", "the shares of the I/Os must be 0 or above"),
        ("locality:nan,50", "must be 0 or above"),
        ("locality:", "cannot be read"),
        ("locality:" + ",".join(["0.1"] * 1000), "1000 shares: give 1 to 256"),
        ("zones:60/10,40/80", "the shares of the space add up to 90 %, not 100"),
        ("zones:60/10,30/90", "the shares of the I/Os add up to 90 %, not 100"),
        ("zones:100/100,0/0", "the zone 0/0 is out of range"),
    ],
)
def test_errors_are_one_line_that_says_what_is_wrong(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_distribution(text)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


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
