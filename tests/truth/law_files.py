"""Files that answer by a known law (lawfs.c), mounted while a block lasts: it is known what a measurement must find."""

from __future__ import annotations

import functools
import mmap
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.rate_search.law_device import Law

SOURCE = Path(__file__).with_name("lawfs.c")
PROBE = "probe"
"""A file beside the others, which is read to see whether the host lets the laws hold."""
_PROBE_LAW = Law(1, 0.001)
_READS = 1500
_MOST_LATE_S = 0.004
_BYTES = 1 << 30
_PATIENCE_S = 60.0


def _line(name: str, law: Law) -> str:
    """Write a law as lawfs reads it."""
    shape = "exp" if law.is_exponential else "const"
    times = f"{law.servers} {law.service_s * 1e6:.1f} {shape} {law.slow_share} {law.slow_factor}"
    return f"{name} {_BYTES} {times}\n"


class LawFiles:
    """Mounted files."""

    def __init__(self, folder: Path, laws: Mapping[str, Law], server: subprocess.Popen[bytes]) -> None:
        self._folder, self._laws, self._server = folder, dict(laws), server

    def path(self, name: str) -> str:
        """Path of a file."""
        return str(self._folder / "files" / name)

    def change(self, name: str, law: Law) -> None:
        """Let a file answer by another law from now on."""
        self._laws[name] = law
        _write_laws(self._folder, self._laws)
        self._server.send_signal(signal.SIGHUP)


def _write_laws(folder: Path, laws: Mapping[str, Law]) -> Path:
    """Write what lawfs reads, at once."""
    path = folder / "laws"
    path.with_suffix(".new").write_text("".join(_line(name, law) for name, law in laws.items()))
    return path.with_suffix(".new").rename(path)


def _lateness_s(files: LawFiles) -> float:
    """Measure what the host adds to the law of a file: the 99th percentile over single reads of the probe."""
    late_s = []
    descriptor = os.open(files.path(PROBE), os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 4096) as page:
            for _ in range(_READS):
                begun_s = time.monotonic()
                os.preadv(descriptor, [page], 0)
                late_s.append(time.monotonic() - begun_s - _PROBE_LAW.service_s)
    finally:
        os.close(descriptor)
    return statistics.quantiles(late_s, n=100)[-1]


@contextmanager
def where_the_law_holds(files: LawFiles) -> Iterator[None]:
    """Judge an answer; a host that is too busy for the law to hold skips the test where it would fail."""
    try:
        yield
    except AssertionError:
        late_s = _lateness_s(files)
        if late_s > _MOST_LATE_S:
            pytest.skip(f"needs an idle host: 1 % of single reads take {1000 * late_s:.1f} ms longer than their law")
        raise


@functools.cache
def _compiled() -> tempfile.TemporaryDirectory[str]:
    """Compile it once in each process, whose end removes it."""
    folder = tempfile.TemporaryDirectory(prefix="lawfs-")
    command = ["cc", "-O2", "-Wall", "-Werror", "-o", f"{folder.name}/lawfs", str(SOURCE), "-lm"]
    subprocess.run(command, check=True, timeout=_PATIENCE_S)
    return folder


@contextmanager
def law_files(folder: Path, laws: Mapping[str, Law], seed: int = 1) -> Iterator[LawFiles]:
    """Serve files by name while the block lasts."""
    laws = {**laws, PROBE: _PROBE_LAW}
    point = folder / "files"
    point.mkdir()
    command = [f"{_compiled().name}/lawfs", str(point), str(_write_laws(folder, laws)), str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n", "the mount of FUSE failed"
            yield LawFiles(folder, laws, server)
        finally:
            server.terminate()
            subprocess.run(["umount", "--lazy", str(point)], check=False, capture_output=True, timeout=_PATIENCE_S)
