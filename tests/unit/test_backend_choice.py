"""Which engine is taken and what is said about it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.guard import OpenTarget, TargetKind
from engine.guard.identity import Identity
from engine.job import Backend, JobSpec, Knobs, Mode
from engine.select import any_on_tmpfs, choose, notices_of


def test_auto_takes_the_ring_where_it_works_and_says_why_not_where_it_does_not() -> None:
    assert choose(JobSpec(), uring_refusal="", on_tmpfs=False).backend is Backend.URING
    refused = choose(JobSpec(), uring_refusal="seccomp says no", on_tmpfs=False)
    assert refused.backend is Backend.THREADS
    assert "seccomp says no" in refused.why


def test_buffered_tmpfs_is_left_to_threads() -> None:
    buffered = JobSpec(knobs=Knobs(mode=Mode.BUFFERED))
    assert choose(buffered, uring_refusal="", on_tmpfs=True).backend is Backend.THREADS
    assert choose(buffered, uring_refusal="", on_tmpfs=False).backend is Backend.URING
    assert choose(JobSpec(), uring_refusal="", on_tmpfs=True).backend is Backend.URING


def test_what_was_asked_for_is_taken_or_refused_with_a_mend() -> None:
    for backend in (Backend.AIO, Backend.THREADS):
        assert choose(JobSpec(backend=backend), uring_refusal="no", on_tmpfs=True).backend is backend
    with pytest.raises(LunscopeError, match="--engine threads"):
        choose(JobSpec(backend=Backend.URING), uring_refusal="io_uring_disabled is 2", on_tmpfs=False)


def target(path: Path, **fields: object) -> OpenTarget:
    fd = os.open(path, os.O_RDONLY)
    plain = OpenTarget(str(path), str(path), fd, TargetKind.FILE, 4096, 1, False, (), None, Identity.of(fd, 4096))
    return replace(plain, **fields)  # type: ignore[arg-type]


def test_tmpfs_is_found_by_the_device_of_the_descriptor(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))
    one = target(file)
    device = os.fstat(one.fd).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    mountinfo = tmp_path / "mountinfo"
    line = "29 1 {} / /somewhere rw,relatime shared:1 - {} none rw\n"
    mountinfo.write_text(line.format("0:99999", "tmpfs") + line.format(number, "ext4"))
    assert not any_on_tmpfs([one], mountinfo)
    mountinfo.write_text(line.format(number, "tmpfs"))
    assert any_on_tmpfs([one], mountinfo)
    one.close()


def test_a_notice_that_several_targets_share_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))
    targets = [target(file, name=name, notices=("slow",), nr_requests=8) for name in ("a", "b", "c")]
    choice = choose(JobSpec(backend=Backend.AIO), uring_refusal="", on_tmpfs=False)
    lines = notices_of(choice, Knobs(queue_depth=9, stripe_width=2), targets)
    assert lines[0].startswith("the aio engine is the readable reference")
    assert lines[1] == "a and 1 more: slow"
    assert lines[2].startswith("a and 1 more: queue depth 9 is above nr_requests 8")
    assert len(notices_of(choice, Knobs(queue_depth=8), targets)) == 2
    for one in targets:
        one.close()
