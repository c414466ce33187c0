"""What is said of I/Os that do not come back."""

from __future__ import annotations

import time

import pytest

from engine.backend.outstanding import Outstanding, Stall, Waits, given_up_text, short_text, waiting_text
from engine.errors import UsageError
from engine.job.file import dump_job, parse_job
from engine.job.spec import JobSpec
from engine.job.validate import validate
from engine.replacing import replace
from tui.headless.wait_lines import WaitLines

NOW_NS = 100 * 10**9
DISK = Outstanding("/dev/sdb", 8, NOW_NS - 2_100_000_000)


def test_texts_name_count_target_and_age() -> None:
    assert waiting_text((DISK,), NOW_NS) == "waiting for 8 I/Os on /dev/sdb, oldest for 2.1 s"
    assert short_text((DISK,), NOW_NS) == "8 I/Os waiting 2.1 s"
    assert given_up_text((replace(DISK, ios=1),)) == "1 I/O on /dev/sdb never came back"
    assert waiting_text((Outstanding("a\x1b[2J", 1, NOW_NS),), NOW_NS).isprintable()
    assert waiting_text(()) == short_text(()) == given_up_text(()) == ""


def test_a_stall_says_how_it_ended() -> None:
    stall = Stall("/dev/sdb", 8, NOW_NS - 5 * 10**9, NOW_NS, returned=True)
    assert stall.text == "8 I/Os on /dev/sdb came back after 5.0 s"
    assert replace(stall, returned=False).text == "8 I/Os on /dev/sdb: given up after 5.0 s"


def test_calls_are_outstanding_while_they_last() -> None:
    waits = Waits()
    with waits.on("/dev/sdb", "fsync"), waits.on("/dev/sdc", "open"):
        assert {(each.target, each.call) for each in waits.outstanding()} == {
            ("/dev/sdb", "fsync"),
            ("/dev/sdc", "open"),
        }
        assert waits.outstanding(5.0) == ()
    assert waits.outstanding() == ()


def test_lines_come_at_the_beginning_and_the_end_and_not_all_the_time() -> None:
    said: list[str] = []
    lines = WaitLines(said.append)
    waits = Outstanding("/dev/sdb", 8, time.monotonic_ns())
    for _ in range(10):
        lines.show((waits,))
    assert len(said) == 1
    lines.show(())
    lines.show(())
    assert len(said) == 2
    assert said[1].startswith("8 I/Os on /dev/sdb came back after ")


def test_the_end_of_a_wait_names_the_most_ios_and_the_oldest_though_some_came_back_before() -> None:
    said: list[str] = []
    lines = WaitLines(said.append)
    since_ns = time.monotonic_ns() - 3_000_000_000
    lines.show((Outstanding("/dev/sdb", 8, since_ns),))
    lines.show((Outstanding("/dev/sdb", 3, since_ns + 2_000_000_000),))
    lines.show(())
    assert said[1].startswith("8 I/Os on /dev/sdb came back after 3.")


def test_the_limit_is_a_key_of_job_files() -> None:
    job = parse_job('give_up = "5s"\n')
    assert job.give_up_s == 5.0
    assert parse_job(dump_job(job)) == job
    assert "give_up" not in dump_job(JobSpec())
    with pytest.raises(UsageError, match="--give-up"):
        validate(replace(job, give_up_s=-1.0))
