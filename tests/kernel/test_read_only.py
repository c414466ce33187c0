"""What is not armed for writing cannot be written, whatever the engine would do: the kernel refuses it."""

from __future__ import annotations

import errno
import fcntl
import functools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from engine import _native
from engine.backend.protocol import LoadBackend
from tests import needs
from tests.kernel.backends import (
    BACKENDS,
    READS,
    WRITES,
    OpenFile,
    eventually,
    filled_file,
    ios,
    knobs_of,
    opened,
    running,
)
from tests.kernel.forked_command import lunscope

MIB = 1 << 20


def descriptors_of(path: Path) -> set[int]:
    """Descriptors of this process, the engine's own included, that lead to a file."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if entry.resolve() == path:
                found.add(int(entry.name))
        except FileNotFoundError:
            continue
    return found


def completed(engine: LoadBackend, column: int) -> int:
    return int(engine.counters()[0, column])


def has_reached(engine: LoadBackend, column: int, wanted: int) -> bool:
    return completed(engine, column) >= wanted


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_target_not_armed_for_writing_is_open_for_reading_only(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    before = path.read_bytes()
    with opened(path, size_bytes=MIB, writable=True) as (armed,):
        unarmed = OpenFile(armed.fd, armed.name, armed.size_bytes, armed.align_bytes, writable=False)
        with running(backend, [unarmed], knobs_of()) as engine:
            eventually(lambda: ios(engine) > 10, "reads")
            own = descriptors_of(path) - {armed.fd}
            assert own
            for descriptor in own:
                flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
                assert flags & os.O_ACCMODE == os.O_RDONLY
                assert flags & os.O_DIRECT
                with pytest.raises(OSError, match="Bad file descriptor") as refused:
                    os.pwrite(descriptor, b"x" * 512, 0)
                assert refused.value.errno == errno.EBADF
            assert "read_only_files" in engine.features
            with pytest.raises(ValueError, match="not open for writing"):
                engine.apply(knobs_of(read_pct=0.0))
    assert path.read_bytes() == before


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_armed_target_turns_to_writes_and_back(backend: str, tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    with (
        opened(path, size_bytes=MIB, writable=True) as targets,
        running(backend, targets, knobs_of()) as engine,
    ):
        assert not {"read_only_ring", "read_only_files"} & set(engine.features)
        for read_pct, column in ((0.0, WRITES), (100.0, READS), (50.0, WRITES)):
            engine.apply(knobs_of(read_pct=read_pct))
            wanted = completed(engine, column) + 10
            eventually(functools.partial(has_reached, engine, column, wanted), "I/O of that direction")
        assert not engine.errors()


@needs.io_uring
def test_the_ring_of_a_load_that_reads_is_restricted_and_its_document_says_so(tmp_path: Path) -> None:
    path = filled_file(tmp_path / "data")
    done = lunscope("run", "--headless", "--target", path, "--engine", "uring", "--runtime", "300ms", "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert {"read_only_ring", "read_only_files"} <= set(document["engine"]["features"])


@needs.io_uring
def test_doctor_says_whether_writes_are_refused(tmp_path: Path) -> None:
    assert _native.read_only_ring_refusal() == ""
    assert "read-only rings" in lunscope("doctor").stdout
    done = lunscope("doctor", "--json")
    check = next(check for check in json.loads(done.stdout)["checks"] if check["id"] == "read-only rings")
    assert check["status"] == "ok"
    assert "in force" in check["found"]
