"""Exact counters read through the probe helper, for users without the rights to trace."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from collectors.exact.probe.message import DEFAULT_PATH, PATH_VARIABLE, VERSION, Message, MessageError, receive, send
from collectors.exact.tracer import PROCESS_COLUMNS, SLOW_COLUMNS, Cells, ProcessIos, no_process_ios
from collectors.sampling.programs import (
    CALL_CELL_COLUMNS,
    CALL_COLUMNS,
    CELL_COLUMNS,
    SLOW_CALL_COLUMNS,
    WAIT_COLUMNS,
    NfsCalls,
    NfsSlowCalls,
    Waits,
    no_slow_calls,
)
from collectors.sampling.reading_settings import LONGEST_ATTACH_S
from collectors.tables.block.schema import TRACE
from engine.errors import LunscopeError

Checked = TypeVar("Checked")

ENTER_S = LONGEST_ATTACH_S - 5.0
"""The helper attaches for its first reader; whoever requires exact time waits longer, and so gets the reason."""
ANSWER_S = 2.0
"""Timeout of a complete answer."""
FIRST_S = 5.0
"""Timeout of the first waits or NFS calls, for which the helper may attach."""


def helper_path() -> Path:
    """Path of the helper's socket."""
    return Path(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def connect(path: Path) -> HelperTracer:
    """Connect to the helper that serves a socket.

    Raises:
        LunscopeError: it refuses, or has another version.
        OSError: nothing listens there.
    """
    return HelperTracer(_connected(path))


def connect_throttle(path: Path) -> HelperThrottle:
    """Connect to the helper for waits for limits of control groups, beside a connection for a tracer.

    Raises:
        LunscopeError: it refuses, or has another version.
        OSError: nothing listens there.
    """
    return HelperThrottle(_connected(path))


def connect_nfs(path: Path) -> HelperNfs:
    """Connect to the helper for times of NFS calls, beside a connection for a tracer.

    Raises:
        LunscopeError: it refuses, or has another version.
        OSError: nothing listens there.
    """
    return HelperNfs(_connected(path))


def _connected(path: Path) -> socket.socket:
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
    return connection


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
        return _ask(self._connection, request)


class _HelperProgram:
    """A program beside those on block I/O that runs in the helper.

    A connection of its own: it is read by another thread than block counters.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._losses = (0, 0)

    def losses(self) -> tuple[int, int]:
        """Losses since the helper attached."""
        return self._losses

    def close(self) -> None:
        """Disconnect; may be called twice."""
        self._connection.close()

    def _request(self, verb: str, within_s: float, check: Callable[[Message], Checked]) -> Checked:
        """Request a reading.

        Raises:
            OSError: the connection to the helper is lost, or it does not run the program, or is of another version.
        """
        answer = _ask(self._connection, {"verb": verb}, within_s)
        try:
            checked = check(answer)
            first, second = map(int, answer.head["losses"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise OSError(f"the probe helper is of another version ({error}): restart it") from error
        self._losses = first, second
        return checked


class HelperThrottle(_HelperProgram):
    """Programs on the block throttle that run in the helper; implements programs.ThrottleProgram."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._rows = 0

    def read(self) -> Waits:
        """Request all waits since the helper attached, and what histograms have grown since the last call.

        Raises:
            OSError: the connection to the helper is lost, or it times no waits.
        """
        within_s = FIRST_S if not self._rows else ANSWER_S
        waits = self._request("throttle", within_s, lambda answer: _checked_waits(answer, self._rows))
        self._rows = len(waits[0])
        return waits


class HelperNfs(_HelperProgram):
    """Program on NFS calls that runs in the helper; implements programs.NfsProgram."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._within_s = FIRST_S
        self._slow = no_slow_calls()

    def read(self) -> NfsCalls:
        """Request the calls that ended since the last request.

        Raises:
            OSError: the connection to the helper is lost, or it times no NFS calls.
        """
        calls, self._slow = self._request("nfs", self._within_s, lambda one: (_checked_calls(one), _checked_slow(one)))
        self._within_s = ANSWER_S
        return calls

    def slowest(self) -> NfsSlowCalls:
        """List the slowest of the calls that were read last; none by a helper of an older version."""
        return self._slow


def _ask(connection: socket.socket, request: Mapping[str, object], within_s: float = ANSWER_S) -> Message:
    try:
        connection.settimeout(within_s)
        send(connection, Message(request))
        answer = receive(connection, within_s)
    except MessageError as error:
        raise OSError(f"the probe helper is gone ({error}): start it again, or run as root") from error
    except OSError as error:
        raise OSError(f"the probe helper does not answer ({error}): restart it") from error
    if answer.head.get("error"):
        raise OSError(f"the probe helper: {answer.head['error']}")
    return answer


def _checked_waits(answer: Message, known: int) -> Waits:
    """Check what indexes other arrays.

    Raises:
        ValueError: shapes or positions are wrong, or rows are missing that were there before.
    """
    rows, cells = answer.arrays["waits"], answer.arrays["cells"]
    if rows.shape[1:] != (WAIT_COLUMNS,) or cells.shape[1:] != (CELL_COLUMNS,):
        raise ValueError("waits of another shape")
    if len(rows) < known or (cells[:, 0] >= len(rows)).any():
        raise ValueError("waits of a group that is not there")
    return rows.astype(np.uint64), cells.astype(np.uint64)


def _checked_calls(answer: Message) -> NfsCalls:
    """Check what indexes other arrays, or is shifted by.

    Raises:
        ValueError: shapes, positions or names are wrong.
    """
    rows, cells, operations = answer.arrays["calls"], answer.arrays["cells"], list(answer.head["operations"])
    if rows.shape[1:] != (CALL_COLUMNS,) or cells.shape[1:] != (CALL_CELL_COLUMNS,):
        raise ValueError("calls of another shape")
    if len(operations) != len(rows) or not all(isinstance(name, str) for name in operations):
        raise ValueError("calls without an operation")
    if (cells[:, 0] >= len(rows)).any() or (cells[:, 1] >= 3).any():
        raise ValueError("calls of a client that is not there")
    return rows.astype(np.uint64), operations, cells.astype(np.uint64)


def _checked_slow(answer: Message) -> NfsSlowCalls:
    """Check the slowest calls, which older helpers do not list.

    Raises:
        ValueError: shapes or names are wrong.
    """
    if "slow" not in answer.arrays:
        return no_slow_calls()
    rows, names = answer.arrays["slow"], [list(answer.head["slow_operations"]), list(answer.head["commands"])]
    if rows.shape[1:] != (len(SLOW_CALL_COLUMNS),):
        raise ValueError("slow calls of another shape")
    if any(len(each) != len(rows) or not all(isinstance(name, str) for name in each) for each in names):
        raise ValueError("slow calls without a name")
    return rows.astype(np.uint64), names[0], names[1]


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
