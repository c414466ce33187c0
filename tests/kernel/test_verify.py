"""Verified loads on real files and devices: what is damaged behind their back is found, located and named."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine import _native
from engine.backend.protocol import LoadSettings
from engine.errors import LunscopeError
from engine.events import EventKind
from engine.job.spec import Access, Backend, BlockShare, JobSpec, Knobs, Permissions, TargetSpec
from engine.results.result_document import run_document
from engine.running.control import LoadControl
from engine.verify.checking import Checked, check_target
from engine.verify.damage import Damage, damage_of
from engine.verify.journal import journal_path
from engine.verify.run_result import VerifiedTarget, final_passes, verified_so_far
from tests import needs
from tests.kernel import forked_command
from tests.kernel.backends import READS, WRITES, OpenFile, driven, empty_file, eventually, ios, knobs_of, opened
from tests.kernel.conftest import Storage
from tests.kernel.paths import BACKENDS, PATH_ERRORS, PATH_FAILED, SIZE_BYTES, opened_lun, running_lun
from tests.kernel.test_path_loss import limit
from tests.kernel.test_stall import children_of
from tests.kernel.throttle import slowed, throttle, without_reads
from tests.unit.documents.printed import run_text, unwrapped

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
WRITING = knobs_of(4, read_pct=0.0)
MIXED = knobs_of(8, read_pct=50.0)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@contextmanager
def verified(
    backend: str, targets: list[OpenFile], knobs: Knobs, journal: int | None = None, **settings: Any
) -> Iterator[_native.LoadEngine]:
    """Run a verified load for as long as the block lasts."""
    native = [_native.LoadTarget(t.fd, t.name, t.size_bytes, t.align_bytes, writable=t.writable) for t in targets]
    assert backend in {"uring", "threads"}
    engine = _native.LoadEngine(
        native,
        knobs,
        LoadSettings(
            backend="uring" if backend == "uring" else "threads", journals=[journal] * len(targets), **settings
        ),
    )
    with driven(engine):
        yield engine


def found_by(engine: _native.LoadEngine, count: int = 1) -> tuple[VerifiedTarget, ...]:
    """What reads and final passes found when the load has stopped."""
    names = [str(number) for number in range(count)]
    passes = final_passes(engine, names, lambda _: None, threading.Event())
    return verified_so_far(engine, names, passes).targets


def write_all(path: Path, folder: Path, backend: str = "threads", knobs: Knobs = WRITING) -> None:
    """Write every block of a file in a verified load with a journal, as `lunscope run` keeps one."""
    journal = journal_path(str(path))
    journal.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    size = path.stat().st_size
    try:
        with (
            opened(path, size_bytes=size, writable=True) as targets,
            verified(backend, targets, knobs, fd, sequential=True) as engine,
        ):
            eventually(lambda: int(engine.verified()[0, 0]) >= size, f"every block of {path} in {folder}")
    finally:
        os.close(fd)


def check(path: str | Path, *, use_journal: bool = True) -> Checked:
    return check_target(str(path), lambda _: None, threading.Event(), use_journal=use_journal)


def change(path: Path, offset: int, data: bytes) -> bytes:
    """Write behind everybody's back; what was there before."""
    with path.open("r+b") as file:
        file.seek(offset)
        before = file.read(len(data))
        file.seek(offset)
        file.write(data)
    return before


def ranges(damage: tuple[Damage, ...]) -> list[tuple[str, int, int]]:
    return [(one.kind.value, one.offset, one.length) for one in damage]


# ------------------------------------------------------------------------------------------------------ while running


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("queue_depth", [1, 16])
def test_a_clean_run_finds_nothing_however_often_blocks_are_overwritten(
    backend: str, queue_depth: int, tmp_path: Path
) -> None:
    """64 blocks of several sizes, so that writes meet writes and reads meet writes all the time."""
    path = empty_file(tmp_path / "data", 256 << 10)
    blocks = (BlockShare(4096, 50.0), BlockShare(8192, 30.0), BlockShare(65536, 20.0))
    knobs = Knobs(queue_depth, blocks=blocks, read_pct=50.0, threads=2)
    with (
        opened(path, size_bytes=256 << 10, writable=True) as targets,
        verified(backend, targets, knobs) as engine,
    ):
        eventually(lambda: bool((engine.counters()[0, [READS, WRITES]] > 2000).all()), "I/Os of both directions")
    (target,) = found_by(engine)
    assert target.all_damage == ()
    assert target.checked_bytes > MIB
    assert target.final_pass is not None
    assert target.final_pass.good_bytes == 256 << 10


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_stripes_and_turned_knobs_stay_verified(backend: str, make_loop: Callable[..., str]) -> None:
    devices = [make_loop(2 * MIB) for _ in range(3)]
    wide = knobs_of(4, 3 * 65536, read_pct=50.0, stripe_width=3)
    with (
        opened(*devices, size_bytes=2 * MIB, writable=True) as targets,
        verified(backend, targets, wide) as engine,
    ):
        for knobs in (wide, knobs_of(9, 8192, read_pct=30.0, stripe_width=2), knobs_of(2, read_pct=70.0), wide):
            engine.apply(knobs)
            before = ios(engine)
            eventually(lambda before=before: ios(engine) > before + 1000, "I/Os")  # type: ignore[misc]
        with pytest.raises(ValueError, match="512 is not a multiple of 4096"):
            engine.apply(knobs_of(2, 512, read_pct=0.0))
    found = found_by(engine, 3)
    assert [target.all_damage for target in found] == [(), (), ()]
    assert all(target.checked_bytes for target in found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_copy_of_a_mirror_is_verified(backend: str, tmp_path: Path) -> None:
    paths = [empty_file(tmp_path / f"data{number}") for number in range(2)]
    with (
        opened(*paths, size_bytes=MIB, writable=True) as targets,
        verified(backend, targets, knobs_of(4, 16384, read_pct=50.0, stripe_width=2), copies=2) as engine,
    ):
        eventually(lambda: ios(engine) > 2000, "I/Os")
    found = found_by(engine, 2)
    assert [target.all_damage for target in found] == [(), ()]
    assert all(target.checked_bytes and target.written_bytes for target in found)


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_lost_path_left_to_another_is_where_it_belongs(backend: str, storage: Storage) -> None:
    image = storage.image(SIZE_BYTES)
    devices = [storage.loop(backing=image) for _ in range(2)]
    knobs = knobs_of(8, read_pct=50.0, rate_iops=4000.0)
    with (
        opened_lun(devices, writable=True) as lun,
        running_lun(backend, lun, knobs, journals=[None]) as engine,
    ):
        eventually(lambda: ios(engine) > 500, "I/Os")
        limit(devices[0], 512)
        eventually(lambda: int(engine.path_counters()[0, PATH_FAILED]) == 1, "the path to be left")
        eventually(lambda: ios(engine) > 1500, "I/Os on the other")
        limit(devices[0], 0)
        eventually(lambda: int(engine.path_counters()[0, PATH_FAILED]) == 0, "the path to answer")
        eventually(lambda: ios(engine) > 2500, "I/Os on both")
    assert int(engine.path_counters()[0, PATH_ERRORS]) > 0
    (target,) = found_by(engine)
    assert target.all_damage == ()
    assert target.checked_bytes > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_open_loop_on_one_block_is_verified_and_its_books_balance(backend: str, tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data", 8192)
    knobs = knobs_of(8, read_pct=20.0, rate_iops=20_000.0)
    with (
        opened(path, size_bytes=8192, writable=True) as targets,
        verified(backend, targets, knobs, arrival="poisson") as engine,
    ):
        eventually(lambda: ios(engine) > 2000, "I/Os")
    assert found_by(engine)[0].all_damage == ()
    assert int(engine.counters()[0, READS] + engine.counters()[0, WRITES]) == ios(engine)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_find_and_locate_one_flipped_bit_once(backend: str, tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB, writable=True) as targets,
        verified(backend, targets, WRITING, sequential=True) as engine,
    ):
        eventually(lambda: int(engine.verified()[0, 0]) >= MIB, "every block")
        engine.apply(knobs_of(4))
        eventually(lambda: engine.epochs()[-1].start_ns is not None, "the last write")
        eventually(lambda: int(engine.counters()[0, READS]) > 512, "reads of every block")
        assert engine.damage() == []
        with path.open("r+b") as file:
            file.seek(300_000)
            byte = file.read(1)[0]
            file.seek(300_000)
            file.write(bytes([byte ^ 0x20]))
            os.fsync(file.fileno())
        eventually(lambda: bool(engine.damage()), "the damage to be found")
        reads = int(engine.counters()[0, READS])
        eventually(lambda: int(engine.counters()[0, READS]) > reads + 1024, "reads of every block again")
    ((target, row),) = engine.damage()
    damage = damage_of(row)
    assert (target, damage.kind, damage.offset, damage.length) == (0, "flipped", 299_520, 512)
    assert damage.text.endswith("bit 5 of byte 300000")
    assert found_by(engine)[0].all_damage == (damage,)


@pytest.mark.parametrize("backend", BACKENDS)
def test_reads_find_blocks_that_went_back_in_time_or_elsewhere(backend: str, tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB, writable=True) as targets,
        verified(backend, targets, WRITING, sequential=True) as engine,
    ):
        eventually(lambda: int(engine.verified()[0, 0]) >= MIB, "every block")
        old = path.read_bytes()[:4096]
        eventually(lambda: int(engine.verified()[0, 0]) >= 3 * MIB, "every block again")
        engine.apply(knobs_of(4))
        eventually(lambda: engine.epochs()[-1].start_ns is not None, "the last write")
        eventually(lambda: int(engine.verified()[0, 1]) > 0, "reads")
        change(path, 0, old)
        change(path, 8192, path.read_bytes()[16384:20480])
        change(path, 24576, bytes(512))
        eventually(lambda: len(engine.damage()) == 3, "the damage to be found")
    assert ranges(found_by(engine)[0].all_damage) == [
        ("stale", 0, 4096),
        ("misplaced", 8192, 4096),
        ("torn", 24576, 512),
    ]


def test_damage_is_an_event_on_the_board_and_in_the_result(tmp_path: Path) -> None:
    path = tmp_path / "data"
    target = (TargetSpec(str(path)),)
    job = JobSpec(target, knobs_of(4, read_pct=0.0), access=Access.SEQUENTIAL, size_bytes=MIB, verify=True)
    control = LoadControl()
    control.arm(job, Permissions(typed=frozenset({str(path)})))
    control.start()
    try:
        eventually(lambda: path.read_bytes().count(b"LUNSCOP1") == MIB // 512, "every block")
        control.turn(knobs_of(4))
        wrong = bytes([path.read_bytes()[5000] ^ 1])

        def is_found() -> bool:
            change(path, 5000, wrong)  # The last write may come after a change.
            return control.status.damaged == 1

        eventually(is_found, "the damage to be found")
    finally:
        control.stop()
    events = [event for event in control.take_events() if event.kind is EventKind.LOAD]
    assert [event.text for event in events if event.data.get("damage") == "flipped"] == [
        f"{path}: flipped at 4608 (512 bytes): bit 0 of byte 5000"
    ]
    assert "1 damaged range" in control.status.message
    result = control.result()
    assert result is not None
    assert result.is_damaged
    text = unwrapped(run_text(result))
    assert f"damage: {path}: flipped at 4608 (512 bytes): bit 0 of byte 5000" in text
    assert "read back at the end; 1 damaged range" in text
    section: Any = run_document(result)["verify"]
    (found,) = section["targets"]
    assert found["damage"][0]["first_bit"] == 8 * (5000 - 4608)
    assert found["final_pass"]["damaged_bytes_by_kind"] == {"flipped": 512}


def test_a_stop_at_once_makes_no_final_pass_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "data"
    job = JobSpec((TargetSpec(str(path)),), WRITING, size_bytes=MIB, verify=True)
    control = LoadControl()
    control.arm(job, Permissions(typed=frozenset({str(path)})))
    control.start()
    control.close()
    result = control.result()
    assert result is not None
    assert result.verified is not None
    assert [target.final_pass for target in result.verified.targets] == [None]
    assert "not all that was written was read back" in control.status.message


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_run_never_wrote_is_no_damage(backend: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(MIB))
    with (
        opened(path, size_bytes=MIB, writable=True) as targets,
        verified(backend, targets, knobs_of(4, read_pct=90.0)) as engine,
    ):
        eventually(lambda: ios(engine) > 200, "I/Os")
    (target,) = found_by(engine)
    assert target.all_damage == ()
    assert target.unwritten_bytes > 0


def test_blocks_that_cannot_be_marked_are_refused(tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB, writable=True, direct=False) as targets,
        pytest.raises(ValueError, match="1000 is not a multiple of 512"),
        verified("threads", targets, knobs_of(1, 1000, read_pct=0.0)),
    ):
        pass


# ------------------------------------------------------------------------------------------------------- afterwards


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_kind_of_damage_is_named_and_located(backend: str, tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    write_all(path, tmp_path, backend)
    old = path.read_bytes()
    write_all(path, tmp_path, backend)
    assert check(path).damage == ()
    new = path.read_bytes()
    change(path, 10_000, bytes([new[10_000] ^ 1]))
    change(path, 65536, new[131_072:135_168])
    change(path, 131_072, new[65536:69632])
    change(path, 200_704, old[200_704:204_800])
    change(path, 303_104 + 1536, old[303_104 + 1536 : 307_200])
    change(path, 409_600 + 300, old[409_600 + 300 : 409_600 + 512])
    change(path, 512_000, bytes(4096))
    change(path, 614_400 + 80, bytes(100))
    expected = [
        ("flipped", 9728, 512),
        ("misplaced", 65536, 4096),
        ("misplaced", 131_072, 4096),
        ("stale", 200_704, 4096),
        ("torn", 304_640, 2560),
        ("torn", 409_600, 512),
        ("lost", 512_000, 4096),
        ("garbled", 614_400, 512),
    ]
    checked = check(path)
    assert checked.used_journal
    assert ranges(checked.damage) == expected
    texts = [damage.text for damage in checked.damage]
    assert "bit 0 of byte 10000" in texts[0]
    assert "what belongs at 131072" in texts[1]
    assert "what belongs at 65536" in texts[2]
    # Where both writes have the same bytes the tear is seen after them.
    assert any(f"one write ends at byte {409_600 + 300 + alike}" in texts[5] for alike in range(4)), texts[5]
    # Whole but old blocks, and blocks overwritten as a whole, leave nothing behind that would tell.
    alone = check(path, use_journal=False)
    assert ranges(alone.damage) == [one for one in expected if one[0] not in {"stale", "lost"}]


def test_a_target_that_was_rolled_back_is_not_called_whole(tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    write_all(path, tmp_path)
    old = path.read_bytes()
    write_all(path, tmp_path)
    path.write_bytes(old)
    checked = check(path)
    assert "rolled back" in checked.notice
    assert not checked.used_journal


@needs.loop
def test_blocks_of_two_targets_that_were_swapped_are_misplaced(make_loop: Callable[..., str]) -> None:
    devices = [make_loop(MIB) for _ in range(2)]
    with (
        opened(*devices, size_bytes=MIB, writable=True) as targets,
        verified("threads", targets, knobs_of(4, read_pct=0.0, stripe_width=2), sequential=True) as engine,
    ):
        eventually(lambda: bool((engine.verified()[:, 0] >= MIB).all()), "every block")
    first, second = (Path(device) for device in devices)
    change(first, 40_960, change(second, 40_960, first.read_bytes()[40_960:45_056]))
    for device in devices:
        (damage,) = check(device).damage
        assert ranges((damage,)) == [("misplaced", 40_960, 4096)]
        assert damage.numbers["belongs_at"] == 40_960


@needs.loop
def test_what_cannot_be_read_is_reported_to_the_block(make_loop: Callable[..., str], tmp_path: Path) -> None:
    device = make_loop(2 * MIB)
    (image,) = tmp_path.glob("*.img")
    with (
        opened(device, size_bytes=2 * MIB, writable=True) as targets,
        verified("threads", targets, WRITING, sequential=True) as engine,
    ):
        eventually(lambda: int(engine.verified()[0, 0]) >= 2 * MIB, "every block")
    os.truncate(image, MIB + 16384)
    kinds = ranges(check(device).damage)
    assert kinds == [("unreadable", MIB + 16384, MIB - 16384)]


def test_a_target_without_any_verified_data_does_not_pass(tmp_path: Path) -> None:
    path = empty_file(tmp_path / "data")
    with pytest.raises(LunscopeError, match="nothing here was written by a load with --verify"):
        check(path)


# ------------------------------------------------------------------------------------------------------ as a command


def lunscope(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = forked_command.lunscope(*arguments)
    assert "Traceback" not in done.stderr
    return done


def test_run_and_verify_agree_and_say_it_with_their_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "data"
    options = ("--size", "4m", "--rw", "randrw", "--qd", "8", "--runtime", "500ms")
    done = lunscope("run", "--verify", "--tier", "kernel", "--json", "--target", path, *options)
    assert done.returncode == 0, done.stderr
    assert '"verify": {"run_ns"' in done.stdout
    assert '"damaged_ranges": 0' in done.stdout
    done = lunscope("verify", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no damage" in done.stdout
    content = path.read_bytes()
    place = content.index(b"LUNSCOP1") + 70
    change(path, place, bytes([content[place] ^ 0x80]))
    done = lunscope("verify", "--json", path)
    assert done.returncode == 1
    assert f'"text": "flipped at {place - 70} (512 bytes): bit 7 of byte {place}"' in done.stdout
    assert lunscope("verify", tmp_path / "none").returncode == 2


def test_a_target_is_not_checked_while_its_load_runs(tmp_path: Path) -> None:
    path = tmp_path / "data"
    control = LoadControl()
    job = JobSpec((TargetSpec(str(path)),), WRITING, size_bytes=MIB, verify=True)
    control.arm(job, Permissions(typed=frozenset({str(path)})))
    control.start()
    try:
        with pytest.raises(LunscopeError, match="a load with --verify runs on it"):
            check(path)
    finally:
        control.stop()
    assert check(path).damage == ()


def test_a_load_that_is_not_verified_takes_the_journal_away(tmp_path: Path) -> None:
    path = tmp_path / "data"
    run = ("run", "--headless", "--tier", "kernel", "--target", path, "--rw", "randwrite", "--runtime", "200ms")
    assert lunscope(*run, "--verify", "--size", "4m").returncode == 0
    assert journal_path(str(path)).exists()
    allowed = ("--allow-write", path, "--destroy-data")
    # The kernel closes the file of a process that has ended a moment later, where it holds it for a ring.
    eventually(lambda: lunscope(*run, *allowed).returncode == 0, "the file to be free")
    assert not journal_path(str(path)).exists()


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", ["direct", "dsync"])
def test_a_killed_run_leaves_nothing_damaged(backend: str, mode: str, make_loop: Callable[..., str]) -> None:
    path = Path(make_loop(4 * MIB))
    options = ["--verify", "--headless", "--target", str(path), "--rw", "randrw", "--qd", "16"]
    options += ["--allow-write", str(path)]
    words = ("run", *options, "--bs", "4k:50,64k:50", "--mode", mode, "--engine", backend, "--tier", "kernel")
    process = forked_command.Forked(*words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    eventually(lambda: b"LUNSCOP1" in path.read_bytes(), "the first verified write", 30)
    time.sleep(0.3)
    (child,) = children_of(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    eventually(lambda: not Path(f"/proc/{child}").exists(), "the end of the process that does the I/O", 30)
    checked = check(path)
    assert checked.used_journal
    # A write through the page cache is given up in the middle when its process is killed (generic_perform_write).
    torn = [damage for damage in checked.damage if mode != "direct" and damage.numbers.get("in_flight")]
    assert list(checked.damage) == torn
    assert checked.result.good_bytes > 0


# ------------------------------------------------------------------------------------- devices that stop answering


@throttle
@needs.loop
def test_a_final_pass_that_stalls_is_named_and_given_up(make_loop: Callable[..., str]) -> None:
    device = make_loop(4 * MIB)
    settings: Any = {"verify": True, "give_up_s": 3.0, "backend": Backend.THREADS}
    control = LoadControl()
    control.arm(
        JobSpec((TargetSpec(device),), WRITING, **settings), Permissions(frozenset({device}), destroy_data=True)
    )
    control.start()
    eventually(lambda: control.status.elapsed_s > 0.5, "some writes", 30)
    with without_reads(device):
        stopping = threading.Thread(target=control.stop, daemon=True)
        stopping.start()
        eventually(lambda: bool(control.status.outstanding), "the name of what waits", 30)
        stopping.join(30)
        assert not stopping.is_alive(), "the end is bounded by the limit"
    result = control.result()
    assert result is not None
    assert result.outstanding
    assert {each.target for each in result.outstanding} == {device}
    assert {each.call for each in result.outstanding} == {"read-back"}
    assert result.ended_in_stall
    assert result.verified is None or any(target.final_pass is None for target in result.verified.targets)


@throttle
@needs.loop
def test_the_check_of_a_target_names_reads_that_do_not_come_back(make_loop: Callable[..., str]) -> None:
    path = make_loop(4 * MIB)
    options = ["--headless", "--tier", "kernel", "--verify", "--target", path, "--rw", "write", "--runtime", "500ms"]
    written = lunscope("run", *options, "--allow-write", path, "--destroy-data")
    assert "read back at the end" in unwrapped(written.stdout), written
    with slowed(path, 2):
        process = subprocess.Popen([sys.executable, "-m", "tui", "verify", path], stderr=subprocess.PIPE, cwd=ROOT)
        try:
            assert process.stderr is not None
            line = process.stderr.readline().decode()
        finally:
            process.kill()
            process.wait()
    assert line.startswith("lunscope: waiting for ")
    assert f" {path}, oldest for " in line
