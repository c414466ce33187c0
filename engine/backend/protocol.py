"""The backends of a load: io_uring, threads and asyncio have the same members, which engine._native documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine._native import FlowShare

if TYPE_CHECKING:
    from engine import _native
    from engine.aio import AioEngine
    from engine.aio.stats import Epoch

LoadBackend: TypeAlias = "_native.LoadEngine | AioEngine"
EpochStats: TypeAlias = "_native.EpochStats | Epoch"

Cells: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]
"""Sparse histogram: target, direction (0 read, 1 write; of a running load also 2 and 3, their service times), bucket,
count."""


class LoadSettings(Struct, frozen=True):
    """What is fixed for a run of the native engine; engine._native.LoadEngine says what each does."""

    backend: Literal["uring", "threads"]
    sequential: bool = False
    streams: int = 1
    stream_step_bytes: int | None = None
    jump_bytes: int = 0
    separate: bool = False
    offset_bytes: int = 0
    align_bytes: int | None = None
    io_bytes: int | None = None
    loops: int | None = None
    ramp_s: float = 0.0
    think_s: float = 0.0
    think_every: int = 1
    priorities: Sequence[tuple[bool, int, int, int]] = ()
    """engine.job.io_priority.kernel_rules."""
    stripe_unit_bytes: int = 65536
    copies: int = 1
    total_queue_depth: bool = False
    seed: int = 1
    max_queue_depth: int = 1024
    """Largest depth of each target; allocated at the start."""
    runtime_s: float | None = None
    arrival: Literal["closed", "constant", "poisson"] = "closed"
    poll: bool = False
    dry: bool = False
    journals: Sequence[int | None] | None = None
    flow: FlowShare | None = None
