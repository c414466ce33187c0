"""Fixtures every test may use: a load, and real loop devices over scratch files, detached whatever happens."""

from __future__ import annotations

import gc
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from bench.terminal import Terminal
from engine.config import SCRATCH_ENV
from engine.running.control import LoadControl
from tests.attaching import attached
from tests.order import ordered

pytest.register_assert_rewrite("tests.golden")

TESTS = Path(__file__).parent
WITH_ALONE = ("fuzz", "kernel")
"""Folders that `make test` searches for tests marked `alone`."""

MOST_OF_A_NAME = 200

settings.register_profile("any machine", deadline=None, derandomize=True)
"""The same examples in each run, so that a change is judged by what it changed."""
settings.register_profile("new examples", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "any machine"))


def pytest_configure() -> None:
    """Hear signals that a shell made this process ignore (nohup, &): what a process ignores its children ignore too."""
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a test of long input by its length: each worker sends the names of all tests, some of megabytes."""
    if not isinstance(val, str | bytes) or len(val) <= MOST_OF_A_NAME:
        return None
    return f"{argname} of {len(val)}"


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Refuse a test marked `alone` where `make test` does not look for such: it would never run; order the others."""
    for item in items:
        if not item.get_closest_marker("alone"):
            continue
        if item.path.relative_to(TESTS).parts[0] not in WITH_ALONE:
            raise pytest.UsageError(
                f"{item.nodeid} is marked alone: move it to {WITH_ALONE}, or add its folder (Makefile)"
            )
        for mark in ("alone", "waits"):
            if item.get_closest_marker(mark) and f"mark.{mark}" not in item.path.read_text():
                raise pytest.UsageError(f"{item.nodeid} is marked {mark} elsewhere: do so in its file (Makefile)")

    yield
    if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
        items[:] = ordered(items, int(workers))


def pytest_collection_finish() -> None:
    """Leave out of garbage collections what stays to the end: the last ones took 0.6 s of each worker."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _state_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the state folder of whoever runs the tests out of them; screens of real processes show no hints."""
    folder = tmp_path_factory.mktemp("state")
    (folder / "lunscope").mkdir()
    (folder / "lunscope" / "hints-dismissed").touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        yield


@pytest.fixture
def control(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadControl]:
    """A load whose scratch file is in a folder of its own."""
    monkeypatch.setenv(SCRATCH_ENV, str(tmp_path / "scratch"))
    control = LoadControl()
    yield control
    control.close()


@pytest.fixture
def terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Terminal]]:
    """Terminals whose programs are ended whatever the test did; their home is empty."""
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", SCRATCH_ENV, "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        if terminal.alive():
            os.kill(terminal.pid, signal.SIGKILL)
        terminal.close(1)


@pytest.fixture
def make_loop(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Attach loop devices over new files: `make_loop(size_bytes, folder=..., direct=True)` returns /dev/loopN."""
    count = itertools.count()

    with ExitStack() as stack:

        def make(size_bytes: int = 64 << 20, folder: Path = tmp_path, *, direct: bool = True) -> str:
            backing = folder / f"lunscope-test-{next(count)}-{id(stack)}.img"
            with backing.open("wb") as file:
                file.truncate(size_bytes)
            stack.callback(backing.unlink, missing_ok=True)
            flags = ["--direct-io=on"] if direct else []
            return stack.enter_context(attached("losetup", "--find", "--show", *flags, str(backing)))

        yield make
