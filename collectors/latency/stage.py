"""The stretches of the way of an I/O."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Where an I/O of the load can spend its time, in the order it passes."""

    SUBMIT = "submit"
    TAG = "tag wait"
    QUEUE = "queue"
    SERVICE = "service"
    REAP = "reap"
    OUTSIDE = "outside"
    """Before and after the block layer together, where the two cannot be told apart."""
