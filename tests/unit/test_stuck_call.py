"""The file that a thread waits for is named, as one on a filesystem that does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tui.process.stuck_call import Watch, file_words, moment_of

WAITING = "import os, sys, tui.process.stuck_call as s; s._BETWEEN_LOOKS_S = 0.05; s.Watch(); os.open(sys.argv[1], 0)"


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / ("a" * 200 + "\x1b[31m")
    os.mkfifo(path)
    return path


@contextmanager
def stuck(call: Callable[[], object], end: Callable[[], object]) -> Iterator[int]:
    """Run a call that waits in a thread, until `end`."""
    thread = threading.Thread(target=call)
    thread.start()
    assert thread.native_id is not None
    try:
        yield thread.native_id
    finally:
        end()
        thread.join()


def words_of(thread: int) -> str:
    """Wait until a thread does the same at two looks, and say for which file."""
    while True:
        first = moment_of(thread)
        words = file_words(first.call)
        if words is not None and moment_of(thread) == first:
            return words


def test_an_open_that_does_not_return(pipe: Path) -> None:
    with stuck(lambda: pipe.open("rb").close(), lambda: pipe.open("wb").close()) as thread:
        assert words_of(thread) == f"open of {pipe.parent}/{'a' * 200}\\x1b[31m"


def test_a_read_that_does_not_return(pipe: Path) -> None:
    descriptor = os.open(pipe, os.O_RDWR)
    try:
        with stuck(lambda: os.read(descriptor, 1), lambda: os.write(descriptor, b"x")) as thread:
            assert words_of(thread).startswith("read of ")
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("call", ["running\n", "", "-1 0x7ffd 0x7f00\n", "99999 0x0 0x0 0x0 0x0 0x0 0x0 0x1 0x2\n"])
def test_a_call_for_no_file(call: str) -> None:
    assert file_words(call) is None


def test_it_ends_when_it_is_stopped() -> None:
    before = threading.enumerate()
    Watch().stop()
    assert threading.enumerate() == before


def test_a_process_that_waits_says_so(pipe: Path) -> None:
    command = [sys.executable, "-c", WAITING, str(pipe)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            assert process.stderr.readline().startswith(f"lunscope: waiting for open of {pipe.parent}/aaa")
        finally:
            process.kill()
