"""Recordings of a noisy load whose epochs are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from collectors.session.writer import SessionWriter
from tests.unit.load_steps import Stretch, recorded_run


@dataclass(frozen=True)
class Epoch:
    """Steady figures of one epoch, with noise of a few percent."""

    seconds: int
    iops: int = 2000
    latency_ns: int = 1_000_000
    noise: float = 0.02


def record(path: Path, *epochs: Epoch, seed: int = 1, interval_s: float = 1.0, close: bool = True) -> Path:
    """Write a load with these epochs, one stretch of a second after the other."""
    run = recorded_run(_stretches(epochs, seed), interval_s=interval_s)
    writer = SessionWriter(path)
    for step in run.steps:
        writer.write(step.current)
    if close:
        writer.close()
    return path


def _stretches(epochs: Sequence[Epoch], seed: int) -> list[Stretch]:
    random = np.random.default_rng(seed)
    found = []
    for epoch in epochs:
        for second in range(epoch.seconds):
            noise = 1 + epoch.noise * random.standard_normal(2)
            figures = int(epoch.iops * noise[0]), int(epoch.latency_ns * noise[1])
            found.append(Stretch(1.0, *figures, turns=second == 0))
    return found
