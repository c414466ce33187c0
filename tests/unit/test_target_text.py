"""Targets as people write them."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.job.choices import POLICY_NAMES, parse_policy
from engine.job.spec import PathPolicy, TargetSpec
from engine.job.target_text import parse_lun, prefer


def test_a_path_is_preferred_by_its_name() -> None:
    lun = prefer(parse_lun("sda,sdb"), frozenset({"/dev/sdb"}))
    assert [path.preferred for path in lun.paths] == [False, True]
    plain = TargetSpec("/dev/sdb")
    assert prefer(plain, frozenset({"/dev/sdb"})) is plain


def test_policies_are_known_by_their_names_and_those_of_others() -> None:
    assert [parse_policy(name) for name in PathPolicy] == list(PathPolicy)
    assert parse_policy("queue-length") is PathPolicy.LEAST_COMMAND_LOAD
    assert parse_policy(" Service_Time ") is PathPolicy.SERVICE_TIME
    with pytest.raises(UsageError, match=f"known are .*{POLICY_NAMES[-1]}"):
        parse_policy("fastest")
