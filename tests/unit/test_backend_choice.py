"""Which engine is taken and what is said about it."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.guard import OpenTarget, TargetKind
from engine.guard.facts import TargetFacts, made_facts
from engine.guard.identity import Identity
from engine.job.scenario import parse_scenario
from engine.job.spec import Backend, JobSpec, Knobs, Mode, TargetSpec
from engine.job.validate import validate
from engine.replacing import replace
from engine.running.select import BackendChoice, blocking_target, choose, notices_of


def test_auto_takes_the_ring_where_it_works_and_says_why_not_where_it_does_not() -> None:
    assert choose(JobSpec(), uring_refusal="", blocking="").backend is Backend.URING
    refused = choose(JobSpec(), uring_refusal="seccomp says no", blocking="")
    assert refused.backend is Backend.THREADS
    assert "seccomp says no" in refused.why


def test_reads_that_block_are_left_to_threads_as_far_as_there_may_be_threads() -> None:
    buffered = JobSpec(knobs=Knobs(mode=Mode.BUFFERED, queue_depth=500))
    taken = choose(buffered, uring_refusal="", blocking="/x")
    assert taken.backend is Backend.THREADS
    assert taken.why.startswith("/x: reads of it block")
    assert choose(buffered, uring_refusal="", blocking="").backend is Backend.URING
    wide = replace(buffered, knobs=replace(buffered.knobs, stripe_width=3))
    assert choose(wide, uring_refusal="", blocking="/x").backend is Backend.URING


def test_what_was_asked_for_is_taken_or_refused_with_a_fix() -> None:
    for backend in (Backend.AIO, Backend.THREADS):
        assert choose(JobSpec(backend=backend), uring_refusal="no", blocking="/x").backend is backend
    with pytest.raises(LunscopeError, match="--engine threads"):
        choose(JobSpec(backend=Backend.URING), uring_refusal="io_uring_disabled is 2", blocking="")


def test_what_the_aio_engine_does_not_turn_is_refused_before_a_target_is_opened() -> None:
    with pytest.raises(UsageError, match="--fsync-every: the aio engine issues no fsync: it needs --engine"):
        validate(JobSpec(knobs=Knobs(fsync_every=8), backend=Backend.AIO))
    with pytest.raises(UsageError, match=r"the aio engine does not drive a mirror \(--mirror\): use --engine uring or"):
        validate(JobSpec((TargetSpec("/a"), TargetSpec("/b")), Knobs(stripe_width=2), copies=2, backend=Backend.AIO))
    turned = 'schema = "lunscope.scenario/1"\n[job]\nengine = "aio"\n[[turn]]\nat = "1s"\nmode = '
    parse_scenario(turned + '"direct-sync"')
    with pytest.raises(
        UsageError, match=r"at 1s: --mode: the aio engine turns direct I/O neither on nor off: it needs"
    ):
        parse_scenario(turned + '"buffered"')


def target(path: Path, **fields: object) -> OpenTarget:
    fd = os.open(path, os.O_RDONLY)
    plain = OpenTarget(str(path), str(path), fd, TargetKind.FILE, 4096, 1, False, (), None, Identity.of(fd, 4096))
    return replace(plain, **fields)  # type: ignore[arg-type]


@pytest.fixture
def tmpfs_file() -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(bytes(8192))
        file.flush()
        yield Path(file.name)


def test_files_whose_buffered_reads_block_are_found_by_asking_them(tmpfs_file: Path) -> None:
    refuses = reads_block_by_hand(tmpfs_file)
    memory = target(tmpfs_file, facts=asked(tmpfs_file))
    assert blocking_target(Knobs(mode=Mode.BUFFERED), [memory]) == (str(tmpfs_file) if refuses else "")
    assert blocking_target(Knobs(mode=Mode.DSYNC, read_pct=50), [memory]) == (str(tmpfs_file) if refuses else "")
    assert blocking_target(Knobs(mode=Mode.BUFFERED, read_pct=0), [memory]) == ""
    assert blocking_target(Knobs(), [memory]) == (str(tmpfs_file) if refuses else "")
    memory.close()


def asked(path: Path) -> TargetFacts:
    """What the guard finds of a file it makes."""
    with path.open("rb") as file:
        return made_facts(Path("/sys"), file.fileno())


def reads_block_by_hand(path: Path) -> bool:
    """Kernels differ in what tmpfs can do."""
    with path.open("rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(512)], 0, os.RWF_NOWAIT)
        except OSError as error:
            return error.errno == errno.EOPNOTSUPP
    return False


def test_the_ring_says_that_threads_would_be_faster(tmpfs_file: Path) -> None:
    if not reads_block_by_hand(tmpfs_file):
        pytest.skip("tmpfs reads without blocking on this kernel")
    memory, ring = target(tmpfs_file, facts=asked(tmpfs_file)), BackendChoice(Backend.URING, "the fastest")
    assert notices_of(ring, Knobs(read_pct=0), [memory]) == ()
    (notice,) = notices_of(ring, Knobs(mode=Mode.BUFFERED), [memory])
    assert notice.startswith(f"{tmpfs_file}: reads of it block")
    assert notices_of(BackendChoice(Backend.THREADS, "asked for"), Knobs(mode=Mode.BUFFERED), [memory]) == ()
    memory.close()


def test_a_notice_that_several_targets_share_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(4096))
    targets = [target(file, name=name, notices=("slow",), nr_requests=8) for name in ("a", "b", "c")]
    choice = choose(JobSpec(backend=Backend.AIO), uring_refusal="", blocking="")
    lines = notices_of(choice, Knobs(queue_depth=9, stripe_width=2), targets)
    assert lines[0].startswith("the aio engine is the readable reference")
    assert lines[1] == "a and 1 more: slow"
    assert lines[2].startswith("a and 1 more: queue depth 9 is above nr_requests 8")
    assert len(notices_of(choice, Knobs(queue_depth=8), targets)) == 2
    assert notices_of(choice, Knobs(threads=4), targets)[1].startswith("threads 4 is for the uring engine")
    for one in targets:
        one.close()
