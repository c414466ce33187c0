"""Real storage for tests: loop devices, partitions, mounts and swap, all undone whatever happens."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine import _native
from tests.attaching import attached


def run(*command: str) -> str:
    """Run a tool and return what it printed; its words are in the error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"
    return done.stdout.strip()


class Storage:
    """Makes devices in one test and takes them apart in reverse order."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._count = 0

    def _path(self, kind: str) -> Path:
        self._count += 1
        return self.folder / f"{kind}{self._count}"

    def undo(self, *command: str) -> None:
        """Run a command at the end, whether it works or not."""
        self._stack.callback(subprocess.run, command, capture_output=True, check=False)

    def image(self, size_bytes: int = 64 << 20) -> Path:
        path = self._path("image")
        with path.open("wb") as file:
            file.truncate(size_bytes)
        return path

    def loop(self, size_bytes: int = 64 << 20, backing: str | Path | None = None, options: tuple[str, ...] = ()) -> str:
        """A loop device over a new file, or over a given file or device; it can have partitions."""
        image = str(backing or self.image(size_bytes))
        return self._stack.enter_context(attached("losetup", "--find", "--show", "--partscan", *options, image))

    def partition(self, disk: str, number: int, start_mib: int, size_mib: int) -> str:
        run("addpart", disk, str(number), str(start_mib * 2048), str(size_mib * 2048))
        self.undo("delpart", disk, str(number))
        return f"{disk}p{number}"

    def mkfs(self, device: str, kind: str = "ext4") -> str:
        run(f"mkfs.{kind}", "-q", device)
        return device

    def mount(self, source: str, *options: str) -> Path:
        point = self._path("mnt")
        point.mkdir()
        run("mount", *options, source, str(point))
        self.undo("umount", str(point))
        return point

    def mount_elsewhere(self, device: str) -> int:
        """Mount a device in a private mount namespace that a process keeps alive; returns its pid."""
        point = self._path("hidden")
        point.mkdir()
        script = f"mount {device} {point} && echo ready && read line"
        process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(process.communicate, "done\n")
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    def swapon(self, target: str) -> str:
        run("mkswap", target)
        run("swapon", target)
        self.undo("swapoff", target)
        return target


@pytest.fixture
def storage(tmp_path: Path) -> Iterator[Storage]:
    with ExitStack() as stack:
        yield Storage(tmp_path, stack)


@pytest.fixture
def tracer() -> Iterator[_native.BlockTracer]:
    tracer = _native.BlockTracer()
    yield tracer
    tracer.close()
