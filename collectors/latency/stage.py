"""Stages of an I/O."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    """Stages in which an I/O of the load spends time, in order."""

    SUBMIT = "submit"
    TAG = "tag wait"
    QUEUE = "queue"
    SERVICE = "service"
    REAP = "reap"
    OUTSIDE = "outside"
    """Before and after the block layer together, where the two cannot be separated."""
