"""Targets as people write them."""

from __future__ import annotations

import pytest

from engine.errors import UsageError
from engine.job.choices import POLICY_NAMES, parse_policy
from engine.job.spec import PathPolicy, PathSpec, TargetSpec
from engine.job.target_text import format_target, parse_lun, parse_target, prefer


def test_the_paths_of_a_lun_have_weights_and_one_may_be_preferred() -> None:
    assert parse_lun("sda, sdb=3,/dev/disk/by-path/x!") == TargetSpec(
        "/dev/sda",
        (PathSpec("/dev/sda"), PathSpec("/dev/sdb", 3), PathSpec("/dev/disk/by-path/x", preferred=True)),
    )
    assert parse_lun("sda").nodes == ("/dev/sda",)


@pytest.mark.parametrize("text", ["", "sda,,sdb", "=3", "sda=", "sda=-1", "sda=x", "sda=1.5", "!"])
def test_what_is_no_list_of_paths_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_lun(text)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "text", ["scratch", "./scratch", "/dev/sdb", "./lun:x", "lun:/dev/sda,/dev/sdb=3", "lun:/dev/sda=0!,/dev/sdb"]
)
def test_every_target_is_written_as_it_is_read(text: str) -> None:
    assert format_target(parse_target(text)) == text
    assert parse_target(format_target(parse_target(text))) == parse_target(text)


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
