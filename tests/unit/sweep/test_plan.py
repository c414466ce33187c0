"""Axes and plans: what --vary means, how long it takes, and what is refused before anything starts."""

from __future__ import annotations

import pytest

from engine.errors import RefusedError, UsageError
from engine.job.sizes import BlockShare
from engine.job.spec import Arrival, JobSpec, Knobs, Permissions, TargetSpec
from engine.study.trial_file import identities
from engine.sweep.axes import parse_axis
from engine.sweep.plan import SweepPlan, make_plan, require_write_permission


def _plan(*axes: str, job: JobSpec | None = None) -> SweepPlan:
    return make_plan(job or JobSpec(targets=(TargetSpec(),) * 4), tuple(map(parse_axis, axes)))


def test_combinations_make_a_curve_each_and_the_load_runs_along_it() -> None:
    plan = _plan("qd=1..8", "stripe_width=1,2,4", "bs=4k,8k")
    assert (len(plan.curves), plan.points) == (6, 24)
    assert plan.load is not None
    assert plan.load.knob.id == "queue_depth"
    assert plan.curves[3].name == "stripe_width=2 bs=8k"
    knobs = plan.knobs_at(plan.curves[3], 8)
    assert (knobs.queue_depth, knobs.stripe_width, knobs.blocks) == (8, 2, (BlockShare(8192),))
    assert plan.expected_s[0] < plan.expected_s[1]


def test_width_is_the_load_where_no_depth_varies_and_nothing_is_where_neither_does() -> None:
    width = _plan("stripe_width=1..4", "bs=4k,8k").load
    assert width is not None
    assert width.knob.id == "stripe_width"
    plain = _plan("bs=4k,8k")
    assert plain.load is None
    assert [curve.name for curve in plain.curves] == ["bs=4k", "bs=8k"]
    assert plain.knobs_at(plain.curves[1], 1).blocks == (BlockShare(8192),)


def test_listed_loads_are_not_bisected() -> None:
    assert not _plan("qd=1,2,4").curves[0].search.bisects
    assert _plan("qd=1..4").curves[0].search.bisects


@pytest.mark.parametrize(
    ("axes", "says"),
    [
        ((), "nothing varies"),
        (("qd=1,2", "qd=4"), "given twice"),
        (("bs=",), "no values: write it like bs=4k..64k or bs=4k,64k"),
        (("paths=",), "no values: write it like paths=1..32 or paths=1,2,4"),
        (("policy=",), "no values: write it like policy=VALUE,VALUE"),
        (
            ("stripe_width=1,8",),
            "stripe_width=8 cannot be measured: --stripe-width: 8 is more than the job has targets",
        ),
        (("bs=4k,1000",), "1000 is not a multiple of 512"),
        (
            (
                "qd=" + ",".join(map(str, range(1, 101))),
                "read_pct=" + ",".join(map(str, range(50))),
                "bs=4k,8k",
            ),
            "10,000 points would take about 17 h",
        ),
    ],
)
def test_impossible_and_huge_plans_are_refused_in_one_line(axes: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as refusal:
        _plan(*axes)
    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_combination_that_only_together_is_impossible_is_named() -> None:
    job = JobSpec(arrival=Arrival.CONSTANT, knobs=Knobs(rate_iops=100.0))
    with pytest.raises(UsageError, match=r"rate=unlimited qd=1 cannot be measured: --rate"):
        _plan("qd=1,2", "rate=unlimited,100", job=job)


def test_points_that_write_need_permission() -> None:
    job = JobSpec(targets=(TargetSpec("/dev/a"), TargetSpec("/dev/b")))
    plan = _plan("read_pct=100,50", "stripe_width=1,2", job=job)
    with pytest.raises(RefusedError, match="--allow-write /dev/b"):
        require_write_permission(plan, Permissions(frozenset({"/dev/a"})))
    require_write_permission(plan, Permissions(frozenset({"/dev/a", "/dev/b"})))
    require_write_permission(_plan("qd=1,2", job=job), Permissions())


def test_identity_follows_what_is_measured() -> None:
    known = identities(_plan("qd=1..8").known_by, ())
    assert identities(_plan("qd=1..8").known_by, ()) == known
    others = _plan("qd=1..16"), _plan("qd=1..8", job=JobSpec(seed=2, targets=(TargetSpec(),) * 4))
    assert not any(set(identities(other.known_by, ())) & set(known) for other in others)


def test_plan_says_how_much_it_is() -> None:
    assert _plan("qd=1..256").words == (
        "qd=1..256: 9 points, about 30 measurements, about 2 min (up to about 10 min on a noisy device)"
    )
