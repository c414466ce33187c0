"""Files that answer by a known law (lawfs.c), mounted while a block lasts: it is known what a measurement must find."""

from __future__ import annotations

import functools
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.unit.rate_search.law_device import Law

SOURCE = Path(__file__).with_name("lawfs.c")
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
