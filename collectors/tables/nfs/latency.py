"""Times of NFS calls from the kernel's tracepoint, added up by mount, operation and transport."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Histograms, Rows, Table
from collectors.sampling.attached import FIRST_PAUSE_S, AttachedProgram
from collectors.sampling.programs import SLOW_CALL_COLUMNS, NfsCalls, NfsProgram, NfsSlowCalls
from collectors.sampling.slow_rows import chosen, command_words, ranks
from collectors.tables.nfs.clients import ClientMounts
from collectors.tables.nfs.schema import (
    LATENCY_SCALE,
    LATENCY_SERIES,
    NFS_LATENCY,
    NFS_SLOW,
    UNKNOWN,
    NfsKey,
    kind_of,
    latency_key,
    latency_parts,
)
from engine.errors import words_of
from engine.hostfs.kernel_files import unescape_octal

MOST_LATENCY_ROWS = 16_384
"""Rows of mount, operation and transport; calls of others are left out, which an event says."""
_US = 1000
_CALLS, _SUMS, _PEAKS = 0, slice(1, 4), slice(4, 7)
_OF_SERIES = (3, 6, 0)
"""First series of queue, RTT and execute in LATENCY_SERIES."""


class TimedCalls(Struct, frozen=True):
    """Calls of one interval."""

    table: Table
    histograms: Histograms
    slow: Table
    """The slowest of them."""
    clients: tuple[NfsKey, ...]
    """Operations of RPC clients whose mount is not known, `all` of each first."""


class _KnownRows(Struct, eq=False):
    """Rows so far, and which of them the calls of a client, transport and operation count in."""

    clients: ClientMounts
    names: dict[str, str] = field(default_factory=dict)
    """Name by key, in the order of the rows."""
    targets: dict[tuple[int, int, int, str], tuple[int, ...]] = field(default_factory=dict)
    unknown: dict[str, NfsKey] = field(default_factory=dict)
    full: bool = False


class NfsLatency:
    """Attaches the program once there are mounts, in a thread, and adds up what it counts."""

    def __init__(self, open_program: Callable[[], NfsProgram], *, first_pause_s: float = FIRST_PAUSE_S) -> None:
        """Nothing is attached yet; `open_program` raises OSError or LunscopeError where it cannot."""
        self._attached = AttachedProgram("nfs-latency", open_program, first_pause_s)
        self._state: object = None
        self._known: _KnownRows | None = None
        self._rows = Rows((), ())
        self._losses = 0, 0
        self._begun: NfsProgram | None = None
        """The program whose calls are counted: from its second reading on, as an interval before it is not whole."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What is left out and why, one line each."""
        refusal, (no_place, missed) = self._attached.refusal, self._losses
        texts = {
            f"no latencies of NFS calls: {refusal}": bool(refusal),
            "NFS calls of more clients, transports and operations than can be told apart have no latency": no_place > 0,
            "NFS calls that ended while another BPF program ran on that CPU have no latency": missed > 0,
            f"NFS latencies: only {MOST_LATENCY_ROWS:,} rows are kept, the rest is left out": self._is_full,
            "some NFS calls have rows by RPC client: their mount is not among those here, or (before Linux 6.5) one of "
            "several that share a connection": bool(self._known is not None and self._known.unknown),
        }
        return tuple(text for text, said in texts.items() if said)

    @property
    def _is_full(self) -> bool:
        return self._known is not None and self._known.full

    def start(self) -> None:
        """Attach in the background; once."""
        self._attached.start()

    def close(self) -> None:
        """Detach; may be called twice."""
        self._attached.close()

    def read(self, state: object, clients: Callable[[], ClientMounts]) -> TimedCalls | None:
        """Return the calls that ended since the last reading; None while nothing is attached.

        Args:
            state: equal as long as mounts and their transports are the same.
            clients: looks up what belongs to what in that state.
        """
        calls = self._calls()
        if calls is None:
            return None
        if self._known is None or state != self._state:
            self._state, self._known = state, _KnownRows(clients())
        return self._added(self._known, *calls)

    def skip(self) -> None:
        """Leave out what ended since the last reading, as while there are no mounts."""
        self._calls()

    def _calls(self) -> tuple[NfsCalls, NfsSlowCalls] | None:
        program = self._attached.program
        if program is None:
            return None
        is_whole, self._begun = program is self._begun, program
        try:
            calls = program.read(), program.slowest()
            self._losses = program.losses()
        except OSError as error:
            self._attached.lose(words_of(error))
            return None
        return calls if is_whole else None

    def _added(self, known: _KnownRows, calls: NfsCalls, slow: NfsSlowCalls) -> TimedCalls:
        rows, operations, cells = calls
        targets = [
            _targets(known, (client, transport, version, operation))
            for (client, transport, version), operation in zip(rows[:, :3].tolist(), operations, strict=True)
        ]
        slow_rows = _first_rows(known, slow)
        if tuple(known.names) != self._rows.keys:
            self._rows = Rows(tuple(known.names), tuple(known.names.values()))
        source, target = _pairs(targets)
        values = np.zeros((len(self._rows), len(NFS_LATENCY.columns)), np.uint64)
        np.add.at(values[:, _CALLS], target, rows[source, 3])
        np.add.at(values[:, _SUMS], target, rows[source, 4:7] * _US)
        np.maximum.at(values[:, _PEAKS], target, rows[source, 7:10] * _US)
        histograms = _histograms(self._rows, source, target, cells, operations)
        slowest = slow_calls_table(slow, slow_rows, _groups(self._rows.keys, slow_rows))
        return TimedCalls(Table(NFS_LATENCY, self._rows, values), histograms, slowest, tuple(known.unknown.values()))


def _targets(known: _KnownRows, whose: tuple[int, int, int, str]) -> tuple[int, ...]:
    """Rows in which these calls count: of every mount that the client works for, new ones at the end."""
    found = known.targets.get(whose)
    if found is None:
        named = list(_named_rows(known, *whose))
        new = sum(key not in known.names for key, _ in named)
        if len(known.names) + new > MOST_LATENCY_ROWS:
            known.full = True
            return ()
        for key, name in named:
            known.names.setdefault(key, name)
        position = {key: at for at, key in enumerate(known.names)}
        found = known.targets[whose] = tuple(position[key] for key, _ in named)
    return found


def _first_rows(known: _KnownRows, slow: NfsSlowCalls) -> list[int | None]:
    """Row of each call; a call that several mounts share, as for their lease, has the row of the first."""
    values, operations, _ = slow
    found = (
        _targets(known, (client, transport, version, operation))
        for (client, transport, version), operation in zip(values[:, 1:4].tolist(), operations, strict=True)
    )
    return [next(iter(rows), None) for rows in found]


def _groups(keys: Sequence[str], rows: Sequence[int | None]) -> list[int]:
    """Return the number of the mount and operation of each row."""
    numbers: dict[tuple[str, str], int] = {}
    parts = (("", "") if row is None else latency_parts(keys[row])[:2] for row in rows)
    return [numbers.setdefault(each, len(numbers)) for each in parts]


def _named_rows(
    known: _KnownRows, client: int, transport: int, version: int, operation: str
) -> Iterator[tuple[str, str]]:
    operation = storable_name(operation.replace(" ", "_"))
    mounts = known.clients.of_client(client, version)
    for mount in mounts:
        number = known.clients.transport_number(client, mount, transport)
        yield _named(mount.key(), unescape_octal(mount.point), operation, str(number or UNKNOWN))
    if not mounts:
        key = client_key(client, version, known.clients.server_of(client))
        for part in (key.part, operation):
            each = NfsKey(key.version, key.protocol, key.address, key.device, key.point, part)
            known.unknown.setdefault(each.text, each)
        yield _named(key, client_name(key), operation, UNKNOWN)


def _named(key: NfsKey, name: str, operation: str, transport: str) -> tuple[str, str]:
    shown = f"{name} {operation}" if transport == UNKNOWN else f"{name} {operation} {transport}"
    return latency_key(key.mount, operation, transport), shown


def client_key(client: int, version: int, address: str) -> NfsKey:
    """Key of all calls of an RPC client whose mount is not known."""
    return NfsKey(str(version), UNKNOWN, address or UNKNOWN, f"client-{client}", UNKNOWN)


def client_name(key: NfsKey) -> str:
    """Name of its rows."""
    return f"{key.address} RPC {key.device}"


def _pairs(targets: Sequence[Sequence[int]]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows of the program, ascending, and the rows of the table in which they count."""
    both = [(source, target) for source, each in enumerate(targets) for target in each]
    pairs = np.array(both, np.intp).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _histograms(
    rows: Rows, source: NDArray[np.intp], target: NDArray[np.intp], cells: NDArray[np.uint64], operations: list[str]
) -> Histograms:
    """Cells by rows of the table: those of a row of the program once for each row it counts in."""
    of_cell = cells[:, 0].astype(np.intp)
    first = np.searchsorted(source, of_cell, "left")
    times = np.searchsorted(source, of_cell, "right") - first
    cell = np.repeat(np.arange(len(cells)), times)
    within = np.arange(len(cell)) - np.repeat(np.cumsum(times) - times, times)
    kinds = np.array([kind_of(operation) for operation in operations], np.intp)
    of_part = np.array(_OF_SERIES, np.intp)
    series = of_part[cells[cell, 1].astype(np.intp)] + kinds[of_cell[cell]]
    return Histograms(
        LATENCY_SCALE,
        rows,
        LATENCY_SERIES,
        target[np.repeat(first, times) + within].astype(np.uint32),
        series.astype(np.uint8),
        cells[cell, 2].astype(np.uint16),
        cells[cell, 3],
    )


_TIMES = ("queue", "rtt", "execute")


def slow_calls_table(calls: NfsSlowCalls, rows: Sequence[int | None], groups: Sequence[int]) -> Table:
    """Make the table of the slowest calls, at least one of each group while there is room.

    Args:
        calls: as the program lists them.
        rows: of each its row in NFS_LATENCY; None where it has none, and is left out.
        groups: of each the number of its mount and operation.
    """
    values, _, commands = calls
    placed = np.array([at for at, row in enumerate(rows) if row is not None], np.intp)
    kept = placed[chosen(np.array(groups, np.uint64)[placed])]
    known = {name: values[kept, at] for at, name in enumerate(SLOW_CALL_COLUMNS)}
    known |= {f"{part}_ns": known[f"{part}_us"] * _US for part in _TIMES}
    known |= {"completed_ns": known["done_ns"], "row": np.array([rows[at] for at in kept.tolist()], np.uint64)}
    words = command_words([commands[at] for at in kept.tolist()])
    is_named = known["process"] > 0
    known |= {"xid": _unless_zero(known["xid"]), "pid": _unless_zero(known["process"])}
    known |= {f"command_{half}": np.where(is_named, words[:, at], MISSING) for at, half in enumerate(("low", "high"))}
    columns = [known[column.id] for column in NFS_SLOW.columns]
    return Table(NFS_SLOW, ranks(len(kept)), np.stack(columns, axis=1).astype(np.uint64))


def _unless_zero(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return np.where(values == 0, MISSING, values)
