"""Session files: bytes of the file and of its log changed, and rows forged under checksums that are right."""

from __future__ import annotations

import functools
import io
import json
import random
import sqlite3
import struct
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from collectors.compare.comparison import CompareOptions, compare
from collectors.compare.document import comparison_document
from collectors.compare.open_side import open_side
from collectors.model import Sample
from collectors.reports.documents.comparison import comparison_sections
from collectors.reports.export import TABLES, Selection, export_lines
from collectors.reports.formats.text import section_lines
from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.session import objects
from collectors.session.format import ObjectKind, seal, unseal
from collectors.session.reader import SessionReader
from collectors.session.recorded_loads import scenario_of
from collectors.session.writer import SessionWriter
from engine import _native
from engine.errors import LunscopeError
from engine.job.scenario import dump_scenario
from engine.replacing import replace
from engine.text import safe_text
from tests.fuzz.campaign import assert_printable, campaign
from tests.fuzz.mutate import ODD_NUMBERS, damaged, odd_value, value_damaged
from tests.session_samples import Machine, assert_same, note

TICKS = 64
_MOST_READ = 200
_FORGED = b"F"
_DAMAGED = b"D"


def run(seed: int, count: int, seconds: float) -> int:
    """Try damaged and forged sessions."""
    return campaign("sessions", make, attempt, seed, count, seconds)


def make(dice: random.Random) -> bytes:
    """Return a file, and its log if it was not closed, as a zip archive after a letter that says what was done."""
    match dice.randrange(5):
        case 0 | 1:
            return _DAMAGED + _packed(damaged(_closed(), dice), b"")
        case 2:
            database, log = _open_ended()
            if dice.random() < 0.2:
                return _DAMAGED + _packed(damaged(database, dice), log)
            log = damaged(log, dice)
            return _DAMAGED + _packed(database, _with_checksums(log) if dice.random() < 0.7 else log)
        case _:
            return _FORGED + _packed(_forged(dice), b"")


def attempt(data: bytes) -> None:
    """Read all there is in every way the verbs do; of what was only damaged no number may be another."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lun")
        database, log = _unpacked(data[1:])
        path.write_bytes(database)
        if log:
            path.with_name("a.lun-wal").write_bytes(log)
        with suppress(LunscopeError), SessionReader(path) as reader:
            _read(reader, _samples() if data[:1] == _DAMAGED else None)
    assert not path.exists()


def _read(reader: SessionReader, expected: list[Sample] | None) -> None:
    last = min(len(reader) - 1, reader.first + _MOST_READ)
    shifts = set()
    for index in range(reader.first, last + 1, 1 if expected is not None else 7):
        sample = reader.sample_at(index)
        if sample is not None and expected is not None:
            # Without its header a file has another zero of its monotonic clock, the same for all of it.
            shifts.add(sample.monotonic_ns - expected[index].monotonic_ns)
            same = replace(sample, events=expected[index].events, monotonic_ns=expected[index].monotonic_ns)
            assert_same(same, expected[index])
    assert len(shifts) <= 1
    lines = [reader.notice, *(event.text for event in reader.events())]
    assert_printable([safe_text(line) for line in lines])
    reader.index_at(reader.start_ns)
    reader.index_at(reader.end_ns)
    assert reader.complete in {True, False}
    _WAYS[last % len(_WAYS)](reader, last)
    if expected is None:
        for way in _WAYS:
            way(reader, last)


def _text(reader: SessionReader, last: int) -> None:
    options = ReportOptions(("disks", "paths", "hbas", "tapes"), split=True, all_disks=True)
    assert_printable(list(report_text(reader.steps(last - 2, last), options)))


def _peaks(reader: SessionReader, last: int) -> None:
    options = ReportOptions(("disks", "hbas"), distribution=True, all_disks=True, interval_s=2.0)
    assert_printable(list(report_text(reader.steps(last - 2, last), options)))


def _documents(reader: SessionReader, last: int) -> None:
    assert_printable(list(report_json(reader.steps(last - 1, last), ReportOptions())))


def _export(reader: SessionReader, last: int) -> None:
    tables = tuple(name for name in ("disks", "paths", "hbas") if name in TABLES)
    lines = export_lines(reader, "csv", Selection(tables), reader.end_ns - 2 * 10**9)
    assert_printable([line for _, line in zip(range(200), lines, strict=False)])


def _scenario(reader: SessionReader, last: int) -> None:
    with suppress(LunscopeError):
        dump_scenario(scenario_of(reader.events(), None, reader.end_ns, "a.lun"))


def _graph(reader: SessionReader, last: int) -> None:
    sample = reader.sample_at(last)
    if sample is not None:
        json.dumps(scan_document(sample.topology))
        assert_printable(list(tree_lines(sample.topology)))


def _compare(reader: SessionReader, last: int) -> None:
    options = CompareOptions(every=True)
    with suppress(LunscopeError):
        first, second = (open_side(f"{reader.path}@{part}", options) for part in ("..4", "4.."))
        comparison = compare(first, second, options)
        assert_printable(list(section_lines(comparison_sections(comparison))))
        json.dumps(comparison_document(comparison), allow_nan=False)


_WAYS = (_text, _peaks, _documents, _export, _scenario, _graph, _compare)
"""How the verbs show what is in a session."""


@functools.cache
def _samples() -> list[Sample]:
    machine = Machine(disks=3, active=2)
    return [machine.sample(note(f"n{tick}")) if tick % 9 == 0 else machine.sample() for tick in range(TICKS)]


@functools.cache
def _recorded() -> tuple[bytes, bytes, bytes]:
    """Return the file and the log before it is closed, and the file after."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lun")
        with SessionWriter(path) as writer:
            for sample in _samples():
                writer.write(sample)
            open_ended = path.read_bytes(), path.with_name("a.lun-wal").read_bytes()
        return *open_ended, path.read_bytes()


def _open_ended() -> tuple[bytes, bytes]:
    return _recorded()[:2]


def _closed() -> bytes:
    return _recorded()[2]


def _forged(dice: random.Random) -> bytes:
    """Change rows through SQLite, with the checksum of the format over what is in them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.lun")
        path.write_bytes(_closed())
        connection = sqlite3.connect(path)
        with suppress(sqlite3.Error, OverflowError, struct.error, ValueError, TypeError, RecursionError):
            for _ in range(dice.choice((1, 1, 2, 5))):
                dice.choice((_forge_object, _forge_object, _forge_tick, _forge_event, _forge_row))(connection, dice)
        with suppress(sqlite3.Error):
            connection.commit()
        connection.close()
        return path.read_bytes()


def _forge_object(connection: sqlite3.Connection, dice: random.Random) -> None:
    rows = connection.execute("SELECT id, kind, data FROM objects").fetchall()
    number, kind, sealed = dice.choice(rows)
    data = unseal(sealed, number, kind)
    if kind in {ObjectKind.HEADER, ObjectKind.END}:
        changed = _json(value_damaged(json.loads(data or b"{}"), dice))
    elif dice.random() < 0.1:
        changed = _native.compress(dice.choice((bytes(1 << 22), b"[" * 50_000, b'{"a":' * 5_000)))
    else:
        value = json.loads(_native.decompress(data, 1 << 24))
        for _ in range(dice.choice((1, 1, 3))):
            value = value_damaged(value, dice)
        changed = _native.compress(_json(value))
    if dice.random() < 0.1:
        changed = damaged(changed, dice)
    connection.execute("UPDATE objects SET data = ? WHERE id = ?", (seal(changed, number, kind), number))


def _forge_tick(connection: sqlite3.Connection, dice: random.Random) -> None:
    tick, time_ns, drift_ns, base, parts, head = connection.execute(
        "SELECT * FROM ticks WHERE tick = ?", (dice.randrange(TICKS),)
    ).fetchone()
    rest = connection.execute("SELECT data FROM parts WHERE id >= ? AND id < ?", (tick * 256, tick * 256 + parts))
    data = unseal(b"".join((head, *(row[0] for row in rest))), tick, time_ns, drift_ns, -1 if base is None else base)
    match dice.randrange(4):
        case 0:
            base = dice.choice((None, tick, tick - 1, tick + 1, 0, dice.choice(ODD_NUMBERS)))
        case 1:
            time_ns = dice.choice((time_ns + dice.choice((-1, 1)) * 10 ** dice.randrange(20), dice.choice(ODD_NUMBERS)))
        case _:
            data = damaged(data, dice)
    sealed = seal(data, tick, time_ns, drift_ns, -1 if base is None else base)
    connection.execute(
        "UPDATE ticks SET time_ns = ?, base = ?, parts = 0, data = ? WHERE tick = ?", (time_ns, base, sealed, tick)
    )


def _forge_event(connection: sqlite3.Connection, dice: random.Random) -> None:
    number, tick, sealed = dice.choice(connection.execute("SELECT id, tick, data FROM events").fetchall())
    value = value_damaged(json.loads(unseal(sealed, tick)), dice)
    if dice.random() < 0.5 and isinstance(value, dict):
        value["kind"] = dice.choice(("knob", "load", "hotplug", "path", "monitor"))
        value["data"] = {
            dice.choice(("job", "knobs", "load", "epoch", "state", "qd")): odd_value(dice) for _ in range(3)
        }
    tick = dice.choice((tick, tick, dice.choice(ODD_NUMBERS)))
    connection.execute("UPDATE events SET tick = ?, data = ? WHERE id = ?", (tick, seal(_json(value), tick), number))


def _forge_row(connection: sqlite3.Connection, dice: random.Random) -> None:
    """Put a value of another type into a column, which SQLite lets be."""
    table, column = dice.choice(
        (
            ("ticks", "data"),
            ("ticks", "time_ns"),
            ("ticks", "parts"),
            ("ticks", "base"),
            ("parts", "data"),
            ("objects", "kind"),
        )
    )
    value = dice.choice(("text", "\udcff".encode("utf-8", "surrogateescape"), 1.5, b"", 2**62, -1, b"\0" * 100_000))
    connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid % 7 = ?", (value, dice.randrange(7)))
    if dice.random() < 0.3:
        # Text that is no UTF-8, which only the blob interface can store.
        connection.execute("UPDATE ticks SET data = CAST(data AS TEXT) WHERE tick = ?", (dice.randrange(TICKS),))


def _json(value: Any) -> bytes:
    return objects.dump(value)


def _with_checksums(log: bytes) -> bytes:
    """Make the frames of a write-ahead log good again (SQLite file format, 4.2), so that SQLite takes their content."""
    if len(log) < 32:
        return log
    data = bytearray(log)
    order = ">" if data[3] & 1 else "<"
    page_bytes = int.from_bytes(data[8:12], "big")
    first = _checksum(bytes(data[:24]), order, (0, 0))
    data[24:32] = struct.pack(">2I", *first)
    salts = bytes(data[16:24])
    at, sums = 32, first
    while 512 <= page_bytes <= 65536 and at + 24 + page_bytes <= len(data):
        data[at + 8 : at + 16] = salts
        sums = _checksum(bytes(data[at : at + 8]), order, sums)
        sums = _checksum(bytes(data[at + 24 : at + 24 + page_bytes]), order, sums)
        data[at + 16 : at + 24] = struct.pack(">2I", *sums)
        at += 24 + page_bytes
    return bytes(data)


def _checksum(data: bytes, order: str, sums: tuple[int, int]) -> tuple[int, int]:
    one, two = sums
    numbers = struct.unpack(f"{order}{len(data) // 4}I", data[: len(data) // 4 * 4])
    for even, odd in zip(numbers[::2], numbers[1::2], strict=False):
        one = (one + even + two) & 0xFFFFFFFF
        two = (two + odd + one) & 0xFFFFFFFF
    return one, two


def _packed(database: bytes, log: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(zipfile.ZipInfo("database"), database)
        archive.writestr(zipfile.ZipInfo("log"), log)
    return buffer.getvalue()


def _unpacked(data: bytes) -> tuple[bytes, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("database"), archive.read("log")
