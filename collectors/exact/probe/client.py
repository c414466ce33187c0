"""Exact counters read through the probe helper, for users without the rights to trace."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectors.exact.probe.message import DEFAULT_PATH, PATH_VARIABLE, VERSION, Message, MessageError, receive, send
from collectors.exact.tracer import PROCESS_COLUMNS, SLOW_COLUMNS, Cells, ProcessIos, no_process_ios
from collectors.tables.block.schema import TRACE
from engine.errors import LunscopeError

ENTER_S = 5.0
"""The helper attaches for its first reader, which takes some time."""
ANSWER_S = 2.0
"""Timeout of a complete answer."""


def helper_path() -> Path:
    """Path of the helper's socket."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def connect(path: Path) -> HelperTracer:
    """Connect to the helper that serves a socket.

    Raises:
        LunscopeError: it refuses, or has another version.
        OSError: nothing listens there.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(ENTER_S)
        connection.connect(str(path))
        welcome = receive(connection, ENTER_S)
        if welcome.head.get("error"):
            raise LunscopeError(f"{path}: {welcome.head['error']}")
        if welcome.head.get("version") != VERSION:
            raise LunscopeError(f"{path}: the probe helper is of another version: restart it")
    except BaseException:
        connection.close()
        raise
    return HelperTracer(connection)


class HelperTracer:
    """A tracer that runs in the helper; implements collectors.exact.tracer.Tracer.

    Every reading requests the changes since the previous one; other readers of the helper have no effect.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._names: list[str] = []
        self._numbers = np.zeros((0, 2), np.uint32)
        self._values = np.zeros((0, len(TRACE.columns)), np.uint64)
        self._cells = np.zeros((0, 4), np.uint64)
        self._slow: tuple[NDArray[np.uint64], list[str]] = np.zeros((0, len(SLOW_COLUMNS)), np.uint64), []
        self._processes = no_process_ios()
        self._groups = np.zeros((0, 2), np.uint64)
        self._losses: Mapping[str, int] = {}
        self.generation = 0
        """Incremented when a row is added or assigned to another device."""

    def names(self) -> list[str]:
        """Kernel names of the rows."""
        return self._names

    def numbers(self) -> NDArray[np.uint32]:
        """Device numbers of the rows, shape (n, 2)."""
        return self._numbers

    def read(self) -> NDArray[np.uint64]:
        """Request everything that changed; peaks are those since the last call.

        Raises:
            OSError: the connection to the helper is lost.
        """
        answer = self._ask({"verb": "turn"})
        try:
            self._take(answer)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OSError(f"the probe helper is of another version ({error}): restart it") from error
        return self._values.copy()

    def cells(self) -> Cells:
        """Return the counts added to the histograms since the last call."""
        cells, self._cells = self._cells, self._cells[:0]
        row, series, bucket, count = cells.T
        return row.astype(np.uint32), series.astype(np.uint8), bucket.astype(np.uint16), count.copy()

    def slowest(self) -> tuple[NDArray[np.uint64], list[str]]:
        """Take the slowest I/Os since the previous reading."""
        return self._slow

    def processes(self) -> ProcessIos:
        """Return what processes did on each device since the last call."""
        processes, self._processes = self._processes, no_process_ios()
        return processes

    def regroup(self, groups: Sequence[Sequence[str]]) -> None:
        """Count busy time of these groups from now on."""
        answer = self._ask({"verb": "regroup", "groups": [list(group) for group in groups]})
        self._groups = answer.arrays["groups"]

    def read_groups(self) -> NDArray[np.uint64]:
        """Busy time of the groups at the last reading, or when they were created."""
        return self._groups

    def watch_tag_wait(self, on: bool) -> None:
        """Enable or disable timing of waits for tags."""
        self._ask({"verb": "tag_wait", "on": on})

    def rescan(self) -> None:
        """Make the helper rescan for devices without a driver queue."""
        self._ask({"verb": "rescan"})

    def losses(self) -> Mapping[str, int]:
        """Losses since the helper attached."""
        return self._losses

    def close(self) -> None:
        """Disconnect; may be called twice."""
        self._connection.close()

    def _take(self, answer: Message) -> None:
        head, arrays = answer.head, answer.arrays
        self._values = np.pad(self._values, ((0, head["rows"] - len(self._values)), (0, 0)))
        self._values[arrays["row"]] = arrays["values"]
        if "names" in head:
            self._names, self._numbers = list(head["names"]), arrays["numbers"]
        self.generation = head["generation"]
        self._cells, self._slow = arrays["cells"], (arrays["slow"], list(head["commands"]))
        self._processes = _checked_processes(arrays["processes"], arrays["process_cells"], head["rows"])
        self._groups, self._losses = arrays["groups"], head["losses"]

    def _ask(self, request: Mapping[str, object]) -> Message:
        try:
            self._connection.settimeout(ANSWER_S)
            send(self._connection, Message(request))
            answer = receive(self._connection, ANSWER_S)
        except MessageError as error:
            raise OSError(f"the probe helper is gone ({error}): start it again, or run as root") from error
        except OSError as error:
            raise OSError(f"the probe helper does not answer ({error}): restart it") from error
        if answer.head.get("error"):
            raise OSError(f"the probe helper: {answer.head['error']}")
        return answer


def _checked_processes(rows: NDArray[np.uint64], cells: NDArray[np.uint64], devices: int) -> ProcessIos:
    """Check what indexes other arrays.

    Raises:
        ValueError: shapes or positions are wrong.
    """
    if rows.shape[1:] != (len(PROCESS_COLUMNS),) or cells.shape[1:] != (3,):
        raise ValueError("processes of another shape")
    if (rows[:, 0] >= devices).any() or (cells[:, 0] >= len(rows)).any():
        raise ValueError("processes of a device that is not there")
    return rows, cells
