"""Damaged and hostile files: a clear error or everything up to the damage; never a crash, never a wrong number."""

from __future__ import annotations

import os
import random
import resource
import sqlite3
import struct
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from collectors.model import Rows, Sample, Topology
from collectors.session import objects
from collectors.session.database import LARGEST_BYTES, structure_damage
from collectors.session.format import MAX_PARTS, TABLES, VERSION, DamageError, ObjectKind, seal, unseal
from collectors.session.reader import SessionReader
from collectors.session.record import Record, RecordSection
from collectors.session.writer import SessionWriter
from collectors.tables.host.schema import HOST
from engine import _native
from engine.errors import LunscopeError
from engine.replacing import replace
from tests.session_samples import Machine, assert_same, note

TICKS = 300
FEW_TICKS = 130
"""Still of several chapters, for what reads everything many times."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Sample]]:
    return _recorded_ticks(tmp_path_factory.mktemp("session") / "sound.lun", TICKS)


@pytest.fixture(scope="module")
def short_recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[Sample]]:
    return _recorded_ticks(tmp_path_factory.mktemp("session") / "sound.lun", FEW_TICKS)


def _recorded_ticks(path: Path, ticks: int) -> tuple[bytes, list[Sample]]:
    machine = Machine(disks=40, active=10)
    samples = [machine.sample(note(f"n{tick}")) if tick % 9 == 0 else machine.sample() for tick in range(ticks)]
    with SessionWriter(path) as writer:
        for sample in samples:
            writer.write(sample)
    return path.read_bytes(), samples


def read_all(path: Path, samples: list[Sample]) -> int:
    """Read everything there is and compare it; how many samples there were, 0 for a clear error."""
    try:
        reader = SessionReader(path)
    except LunscopeError as error:
        if str(path) not in str(error) or "\n" in str(error):
            raise
        return 0
    with reader:
        seen = 0
        for index in range(min(len(reader), len(samples) + 10)):
            sample = reader.sample_at(index)
            if sample is not None:
                expected = samples[index]
                missing = [event for event in expected.events if event not in sample.events]
                assert not missing or "event" in reader.notice
                assert_same(replace(sample, events=expected.events), expected)
                seen += 1
        assert seen == len(samples) or reader.notice or len(reader) < len(samples)
        assert {event.text for event in reader.events()} <= {event.text for s in samples for event in s.events}
        return seen


@pytest.mark.slow
def test_a_sound_file_is_read_whole(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    path = tmp_path / "a.lun"
    path.write_bytes(recording[0])
    assert read_all(path, recording[1]) == TICKS


@pytest.mark.slow
def test_a_truncated_file_gives_what_came_before(short_recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    data, samples = short_recording
    path = tmp_path / "cut.lun"
    seen = []
    for size in [*range(0, len(data), 4096), *range(7, len(data), 40_961)]:
        path.write_bytes(data[:size])
        seen.append((size, read_all(path, samples)))
    assert max(count for size, count in seen if size < len(data) // 2) > FEW_TICKS // 4
    assert all(count == 0 for size, count in seen if size < 4096)


@pytest.mark.slow
def test_no_flipped_bit_becomes_a_number(short_recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    data, samples = short_recording
    path = tmp_path / "flipped.lun"
    dice = random.Random(11)
    seen = []
    for _ in range(40):
        damaged = bytearray(data)
        for _ in range(dice.choice([1, 1, 4])):
            damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        seen.append(read_all(path, samples))
    assert sorted(seen)[len(seen) // 4] > FEW_TICKS // 2


@pytest.mark.slow
def test_overwritten_stretches_leave_the_rest(short_recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    data, samples = short_recording
    path = tmp_path / "holes.lun"
    dice = random.Random(5)
    for fill in (b"\0", b"\xff", b"\r"):
        for _ in range(8):
            start = dice.randrange(4096, len(data) - 8192)
            path.write_bytes(data[:start] + fill * 4096 + data[start + 4096 :])
            read_all(path, samples)


def _change(path: Path, data: bytes, *statements: tuple[str, tuple[object, ...]]) -> Path:
    path.write_bytes(data)
    connection = sqlite3.connect(path)
    for statement, values in statements:
        connection.execute(statement, values)
    connection.commit()
    connection.close()
    return path


def test_a_damaged_tick_takes_only_those_stored_as_differences_to_it(
    recording: tuple[bytes, list[Sample]], tmp_path: Path
) -> None:
    data, samples = recording
    path = _change(tmp_path / "a.lun", data, ("UPDATE ticks SET time_ns = time_ns + 1 WHERE tick = 177", ()))
    with SessionReader(path) as reader:
        readable = [index for index in range(TICKS) if reader.sample_at(index) is not None]
        assert readable == [*range(177), *range(180, TICKS)]
        assert_same(reader.sample_at(180), samples[180])
        step = reader.step_at(180)
        assert step is not None
        assert step.previous is None
        assert "3 ticks unreadable, the rest is shown" in reader.notice
        assert reader.index_at(samples[177].time_ns) in {176, 177}


def test_a_missing_tick_is_damage_not_a_bridge(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    path = _change(tmp_path / "a.lun", recording[0], ("DELETE FROM ticks WHERE tick = 100", ()))
    with SessionReader(path) as reader:
        assert reader.sample_at(99) is not None
        assert reader.sample_at(100) is None
        assert reader.sample_at(101) is None
        assert_same(reader.sample_at(120), recording[1][120])


def test_objects_of_a_chapter_may_be_lost(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    kind = ObjectKind.TOPOLOGY
    path = _change(tmp_path / "a.lun", recording[0], ("UPDATE objects SET data = x'00' WHERE kind = ?", (kind,)))
    with pytest.raises(LunscopeError, match="no sample of it can be read"):
        SessionReader(path)


def test_the_header_may_be_lost(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    kind = ObjectKind.HEADER
    path = _change(tmp_path / "a.lun", recording[0], ("DELETE FROM objects WHERE kind = ?", (kind,)))
    with SessionReader(path) as reader:
        step = reader.step_at(50)
        assert step is not None
        assert step.previous is not None
        assert step.current.monotonic_ns - step.previous.monotonic_ns == 10**9


def test_a_session_without_ticks_is_said_to_be_empty(tmp_path: Path) -> None:
    SessionWriter(tmp_path / "a.lun").close()
    with pytest.raises(LunscopeError, match="holds no samples"):
        SessionReader(tmp_path / "a.lun")


def test_other_files_are_recognised(tmp_path: Path) -> None:
    empty, text, other, folder = (tmp_path / name for name in ("empty", "text", "other", "folder"))
    empty.touch()
    text.write_text("time,reads\n" * 1000)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    folder.mkdir()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, reason in (
        (tmp_path / "absent", "No such file"),
        (empty, "empty, not a lunscope session"),
        (text, "not a lunscope session"),
        (other, "not a lunscope session"),
        (folder, "not a regular file"),
        (fifo, "not a regular file"),
        (Path("/dev/null"), "not a regular file"),
    ):
        with pytest.raises(LunscopeError, match=reason) as caught:
            SessionReader(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_newer_format_asks_for_an_update(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    path = _change(tmp_path / "a.lun", recording[0], (f"PRAGMA user_version={VERSION + 1}", ()))
    with pytest.raises(LunscopeError, match="update lunscope"):
        SessionReader(path)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON ticks BEGIN DELETE FROM ticks; END",
        "CREATE VIEW v AS SELECT * FROM ticks",
        "CREATE TABLE extra (x)",
        "CREATE INDEX i ON ticks (time_ns)",
        "CREATE VIRTUAL TABLE f USING fts5(x)",
        "ALTER TABLE ticks ADD COLUMN x DEFAULT 1",
    ],
)
def test_a_schema_with_anything_else_is_refused(
    recording: tuple[bytes, list[Sample]], tmp_path: Path, statement: str
) -> None:
    try:
        path = _change(tmp_path / "a.lun", recording[0], (statement, ()))
    except sqlite3.OperationalError as error:
        pytest.skip(f"this SQLite cannot make it: {error}")
    with pytest.raises(LunscopeError, match="other tables inside"):
        SessionReader(path)


def test_a_view_in_the_place_of_a_table_is_refused(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    path = _change(
        tmp_path / "a.lun",
        recording[0],
        ("DROP TABLE ticks", ()),
        (
            "CREATE VIEW ticks AS WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x FROM r) SELECT x AS tick FROM r",
            (),
        ),
    )
    with pytest.raises(LunscopeError, match="other tables inside"):
        SessionReader(path)


@pytest.mark.parametrize(
    ("time_ns", "drift_ns"),
    [(-1, 0), (-(1 << 63), (1 << 63) - 1), (1 << 62, 0), ((1 << 63) - 1, 0), (1, 1 << 62), (1, -(1 << 63))],
)
def test_a_tick_whose_time_no_clock_shows_is_left_out(
    short_recording: tuple[bytes, list[Sample]], tmp_path: Path, time_ns: int, drift_ns: int
) -> None:
    """So that differences of times, of which charts and histories are full, fit 64 bits."""
    data, samples = short_recording
    path = tmp_path / "a.lun"
    path.write_bytes(data)
    retime(path, {20: (time_ns, drift_ns)})
    seen = read_all(path, samples)
    assert FEW_TICKS // 4 < seen < FEW_TICKS
    with SessionReader(path) as reader:
        assert reader.sample_at(20) is None
        assert "damaged at" in reader.notice
    retime(path, dict.fromkeys(range(FEW_TICKS), (time_ns, drift_ns)))
    with pytest.raises(LunscopeError, match="damaged, no sample of it can be read"):
        SessionReader(path)


@pytest.mark.parametrize("time_ns", [-1, 1 << 62, 1 << 80])
def test_an_event_whose_time_no_clock_shows_is_none(time_ns: int) -> None:
    value = objects.event_to_json(note("a"))
    for field in ("time_ns", "monotonic_ns"):
        with pytest.raises(DamageError, match="a time that no clock shows"):
            objects.event_from_json({**value, field: time_ns})


def retime(path: Path, times: dict[int, tuple[int, int]]) -> None:
    """Give ticks other times with right checksums."""
    connection = sqlite3.connect(path)
    for tick, (time_ns, drift_ns) in times.items():
        query = "SELECT time_ns, drift_ns, base, parts, data FROM ticks WHERE tick = ?"
        *stored, base, parts, head = connection.execute(query, (tick,)).fetchone()
        query = "SELECT data FROM parts WHERE id >= ? AND id < ?"
        rest = connection.execute(query, (tick * MAX_PARTS, tick * MAX_PARTS + parts))
        base_number = -1 if base is None else base
        data = unseal(b"".join((head, *(row[0] for row in rest))), tick, *stored, base_number)
        sealed = seal(data, tick, time_ns, drift_ns, base_number)
        connection.execute(
            "UPDATE ticks SET time_ns = ?, drift_ns = ?, parts = 0, data = ? WHERE tick = ?",
            (time_ns, drift_ns, sealed, tick),
        )
    connection.commit()
    connection.close()


class _Forger:
    """Writes session files whose checksums are right and whose content is not."""

    def __init__(self, path: Path) -> None:
        SessionWriter(path).close()
        self._connection = sqlite3.connect(path)

    def object(self, number: int, kind: int, data: bytes) -> None:
        row = (number, kind, seal(data, number, kind))
        self._connection.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", row)

    def tick(self, tick: int, data: bytes, base: int | None = None, parts: int = 0) -> None:
        sealed = seal(data, tick, 1, 0, -1 if base is None else base)
        self._connection.execute("INSERT INTO ticks VALUES (?, 1, 0, ?, ?, ?)", (tick, base, parts, sealed))

    def close(self) -> None:
        self._connection.commit()
        self._connection.close()


def _frame(value: object) -> bytes:
    return _native.compress(objects.dump(value))


def _with_sound_objects(path: Path) -> _Forger:
    forger = _Forger(path)
    forger.object(2, ObjectKind.SCHEMA, _frame(objects.schema_to_json(HOST)))
    forger.object(3, ObjectKind.ROWS, _frame(objects.rows_to_json(Rows(("h",), ("h",)))))
    forger.object(4, ObjectKind.TOPOLOGY, _frame(objects.topology_to_json(Topology())))
    return forger


def _record(*sections: RecordSection, histograms: tuple[RecordSection, ...] = ()) -> bytes:
    return Record(gap=False, late_ns=0, cost_ns=0, topology_id=4, tables=sections, histograms=histograms).to_bytes()


def _sound_section() -> RecordSection:
    return RecordSection(
        2, 3, _native.TableCodec(1, len(HOST.columns)).encode(np.ones((1, len(HOST.columns)), np.uint64))
    )


def test_the_forger_can_make_a_sound_file(tmp_path: Path) -> None:
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.tick(0, _record(_sound_section()), base=0)
    forger.close()
    with SessionReader(tmp_path / "a.lun") as reader:
        assert reader.sample_at(0) is not None


_BOMB = bytes(1 << 26)
_ONE_ROW = {"base": 0, "runs": [-1, 1], "keys": ["h"], "names": ["h"]}
_FORGED_ROWS: list[object] = [
    _ONE_ROW | {"base": 3},
    _ONE_ROW | {"base": 99},
    _ONE_ROW | {"base": -1},
    _ONE_ROW | {"base": True},
    _ONE_ROW | {"runs": [-1, 1] * 100_000},
    _ONE_ROW | {"runs": [0, 1 << 62]},
    _ONE_ROW | {"runs": [-1]},
    _ONE_ROW | {"runs": ["x", 1]},
    _ONE_ROW | {"keys": [1]},
    _ONE_ROW | {"names": []},
    {"keys": ["h"] * (1 << 21), "names": ["h"] * (1 << 21), "runs": [-1, 1 << 21], "base": 0},
    [],
    None,
]
_SCHEMA = objects.schema_to_json(HOST)
_FORGED_SCHEMAS: list[object] = [
    _SCHEMA | {"columns": [["a", "counter"]] * 100_000},
    _SCHEMA | {"columns": [["a"]]},
    _SCHEMA | {"columns": {"a": 1}},
    _SCHEMA | {"name": 5},
    "x",
]
_TOPOLOGY = objects.topology_to_json(Topology())
_FORGED_TOPOLOGIES: list[object] = [
    _TOPOLOGY | {"host": 1},
    _TOPOLOGY | {"host": {"cpus": "4"}},
    _TOPOLOGY | {"host": {"tier": 9}},
    _TOPOLOGY | {"host": {"notices": [1]}},
    _TOPOLOGY | {"devices": []},
    _TOPOLOGY | {"devices": {}},
    _TOPOLOGY | {"devices": {**_TOPOLOGY["devices"], "key": ["a"]}},
    _TOPOLOGY | {"devices": {name: [{}] for name in _TOPOLOGY["devices"]}},
]
_FORGERIES = [
    *((3, ObjectKind.ROWS, partial(_frame, value)) for value in _FORGED_ROWS),
    *((2, ObjectKind.SCHEMA, partial(_frame, value)) for value in _FORGED_SCHEMAS),
    *((4, ObjectKind.TOPOLOGY, partial(_frame, value)) for value in _FORGED_TOPOLOGIES),
    (4, ObjectKind.TOPOLOGY, partial(_native.compress, _BOMB)),
    (4, ObjectKind.TOPOLOGY, lambda: b"junk"),
    (4, ObjectKind.TOPOLOGY, partial(_native.compress, b"[" * 100_000)),
    (4, ObjectKind.TOPOLOGY, partial(_native.compress, b'{"devices":' + b"9" * 10_000 + b"}")),
    (2, ObjectKind.ROWS, bytes),
    (3, 77, bytes),
]
"""Their data are made by the test: every worker imports this."""


@pytest.mark.parametrize(("number", "kind", "make_data"), _FORGERIES)
def test_forged_objects_give_a_clear_error_in_bounded_memory(
    tmp_path: Path, number: int, kind: ObjectKind, make_data: Callable[[], bytes]
) -> None:
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.object(number, kind, make_data())
    forger.tick(0, _record(_sound_section()), base=0)
    forger.close()
    _assert_unreadable_in_bounded_memory(tmp_path / "a.lun")


@pytest.mark.parametrize(
    ("data", "base", "parts"),
    [
        (b"", 0, 0),
        (b"\xff" * 50, 0, 0),
        (_record(RecordSection(2, 3, b"\xff" * 9)), 0, 0),
        (_record(RecordSection(2, 3, _native.compress(_BOMB))), 0, 0),
        (_record(RecordSection(1 << 62, 3, b"")), 0, 0),
        (_record(_sound_section(), _sound_section()) + b"x", 0, 0),
        (_record(*[_sound_section()] * 300), 0, 0),
        (_record(_sound_section(), histograms=(RecordSection(2, 3, b""),)), 0, 0),
        (_record(_sound_section()), None, 0),
        (_record(_sound_section()), 5, 0),
        (_record(_sound_section()), -7, 0),
        (_record(_sound_section()), 0, 3),
        (_record(_sound_section()), 0, 1 << 60),
    ],
)
def test_forged_ticks_give_a_clear_error(tmp_path: Path, data: bytes, base: int | None, parts: int) -> None:
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.tick(0, data, base, parts)
    forger.close()
    _assert_unreadable_in_bounded_memory(tmp_path / "a.lun")


def test_a_histogram_of_rows_that_are_not_there_is_damage(tmp_path: Path) -> None:
    forger = _with_sound_objects(tmp_path / "a.lun")
    shape = {"name": "load", "unit_ns": 1, "sub_bits": 6, "series": ["read"]}
    forger.object(5, ObjectKind.HISTOGRAM_SHAPE, _frame(shape))
    cells = _native.encode_cells(
        np.ones(1, np.uint32), np.zeros(1, np.uint8), np.ones(1, np.uint16), np.ones(1, np.uint64)
    )
    forger.tick(0, _record(_sound_section(), histograms=(RecordSection(5, 3, cells),)), base=0)
    forger.close()
    _assert_unreadable_in_bounded_memory(tmp_path / "a.lun")


def test_a_tick_number_out_of_all_bounds_is_no_work(tmp_path: Path) -> None:
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.tick(0, _record(_sound_section()), base=0)
    forger.tick(2**62, _record(_sound_section()), base=0)
    forger.close()
    with SessionReader(tmp_path / "a.lun") as reader:
        assert len(reader) < 10_000
        assert reader.sample_at(0) is not None
        assert reader.sample_at(len(reader) - 1) is None
        assert reader.end_ns == reader.start_ns


def _assert_unreadable_in_bounded_memory(path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LunscopeError, match="no sample of it can be read") as caught:
            SessionReader(path)
        assert "\n" not in str(caught.value)
        assert tracemalloc.get_traced_memory()[1] < 150 << 20
    finally:
        tracemalloc.stop()


def test_the_file_says_what_it_is(recording: tuple[bytes, list[Sample]]) -> None:
    assert recording[0][68:72] == b"LUNS"
    assert struct.unpack(">I", recording[0][60:64]) == (VERSION,)
    assert set(TABLES) == {"ticks", "parts", "objects", "events"}


def test_damage_that_no_reader_comes_by_is_reported(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    data = bytearray(recording[0])
    data[-4096:] = bytes(4096)
    path = tmp_path / "a.lun"
    path.write_bytes(data)
    with SessionReader(path) as reader:
        assert reader.sample_at(0) is not None
        assert "damaged" in reader.notice
    path.write_bytes(recording[0])
    with SessionReader(path) as reader:
        assert reader.notice == ""


@pytest.mark.slow
def test_a_check_ends_in_time_and_large_files_are_not_checked(tmp_path: Path) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (1)")
    for _ in range(21):
        connection.execute("INSERT INTO t SELECT x FROM t")
    assert structure_damage(connection, 1) == ""
    broken = sqlite3.connect(":memory:")
    broken.close()
    assert structure_damage(broken, LARGEST_BYTES + 1) == ""


def test_text_that_is_no_utf8_is_damage_not_a_traceback(recording: tuple[bytes, list[Sample]], tmp_path: Path) -> None:
    """Python itself raises an OperationalError for it, which has no code of SQLite."""
    for column in ("data", "base"):
        change = (f"UPDATE ticks SET {column} = CAST(x'ff00fe' AS TEXT) WHERE tick = 5", ())
        path = _change(tmp_path / f"{column}.lun", recording[0], change)
        with SessionReader(path) as reader:
            assert reader.sample_at(5) is None
            assert "unreadable" in reader.notice or "damaged" in reader.notice


_PADDING = random.Random(7).randbytes(40_000).hex().encode()
"""It compresses poorly, so that the ratio of the whole is one that files have."""


@pytest.mark.parametrize("body", [b"[],", b'"ab",', b'{"a":1},', b"12345,"])
def test_an_object_that_would_fill_the_memory_is_damage(tmp_path: Path, body: bytes) -> None:
    raw = b'{"x":"' + _PADDING + b'","devices":[' + body * (15_000_000 // len(body)) + b"[]]}"
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.object(4, ObjectKind.TOPOLOGY, _native.compress(raw))
    forger.tick(0, _record(_sound_section()), base=0)
    forger.close()
    _assert_unreadable_in_bounded_memory(tmp_path / "a.lun")


def test_tables_that_would_fill_the_memory_are_damage(tmp_path: Path) -> None:
    rows = Rows(tuple(f"k{number}" for number in range(4000)), ("n",) * 4000)
    data = _native.TableCodec(4000, 200).encode(np.zeros((4000, 200), np.uint64))
    forger = _with_sound_objects(tmp_path / "a.lun")
    forger.object(10, ObjectKind.ROWS, _frame(objects.rows_to_json(rows)))
    columns = [[f"c{number}", "counter"] for number in range(200)]
    sections = []
    for number in range(100, 200):
        forger.object(number, ObjectKind.SCHEMA, _frame({"name": f"t{number}", "columns": columns}))
        sections.append(RecordSection(number, 10, data))
    forger.tick(0, _record(*sections), base=0)
    forger.close()
    before_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    _assert_unreadable_in_bounded_memory(tmp_path / "a.lun")
    # What the native core holds is no business of tracemalloc.
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10) - before_bytes < 200 << 20
