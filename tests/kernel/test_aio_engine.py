"""The asyncio engine on real files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.aio import AioEngine, AioTarget
from engine.job.spec import Knobs
from tests.kernel.backends import eventually

SIZE = 8 << 20


@pytest.fixture
def targets(tmp_path: Path) -> Iterator[list[AioTarget]]:
    made = []
    for index in range(3):
        path = tmp_path / f"target{index}"
        path.write_bytes(os.urandom(SIZE))
        made.append(AioTarget(os.open(path, os.O_RDWR), str(path), SIZE, 512, writable=True))
    yield made
    for target in made:
        os.close(target.fd)


@pytest.fixture
def run(targets: list[AioTarget]) -> Iterator[Callable[..., AioEngine]]:
    started: list[AioEngine] = []

    def start(knobs: Knobs, **settings: object) -> AioEngine:
        engine = AioEngine(targets, knobs, **settings)  # type: ignore[arg-type]
        started.append(engine)
        engine.start()
        return engine

    yield start
    for engine in started:
        assert engine.stop()
        assert engine.fault == ""


def ios(engine: AioEngine) -> NDArray[np.uint64]:
    counters = engine.counters()
    return np.asarray(counters[:, 0] + counters[:, 4])


def test_writes_change_only_the_range_given(targets: list[AioTarget]) -> None:
    before = Path(targets[0].name).read_bytes()
    part = AioTarget(targets[0].fd, "part", 65536, 512, writable=True)
    engine = AioEngine([part], Knobs(queue_depth=4, read_pct=0), sequential=True)
    engine.start()
    eventually(lambda: int(ios(engine).sum()) >= 40)
    assert engine.stop()
    after = Path(targets[0].name).read_bytes()
    assert all(before[at : at + 4096] != after[at : at + 4096] for at in range(0, 65536, 4096))
    assert before[65536:] == after[65536:]


LEFT_RUNNING = """
import os, sys
from engine.aio import AioEngine, AioTarget
from engine.job.spec import Knobs

target = AioTarget(os.open(sys.argv[1], os.O_RDONLY), "target", os.stat(sys.argv[1]).st_size, 512, writable=False)
engine = AioEngine([target], Knobs(queue_depth=8))
engine.start()
while not engine.counters()[:, 0].sum():
    pass
"""


def test_an_interpreter_that_exits_amid_a_load_ends_in_silence(targets: list[AioTarget]) -> None:
    command = [sys.executable, "-c", LEFT_RUNNING, targets[0].name]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
