"""What the kernel writes of control groups, in all its versions, and what it does not write."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.model import MISSING
from collectors.tables.cgroup.tree import blkio_limits, io_max
from engine._native import GroupReader

_NONE = int(MISSING)
_COUNTERS = 11
"""Columns before the pressures."""
_V1 = ("io_service_bytes", "io_serviced")
_SIX = "rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6"
_COSTS = "cost.usage=7 cost.wait=8 cost.indebt=9 cost.indelay=10"


def read(counters: tuple[str, ...], texts: tuple[bytes, ...], stalls: bytes = b"") -> dict[tuple[int, int], list[int]]:
    """Values by device of one group with these files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in zip((*counters, "io.pressure"), (*texts, stalls), strict=True):
            (Path(folder) / name).write_bytes(text)
        reader = GroupReader(counters, "io.pressure")
        reader.follow([(1, folder, 0)])
        reader.read()
        devices, values = reader.places()[:, 1:].tolist(), reader.values().tolist()
        reader.close()
    return {(major, minor): row for (major, minor), row in zip(devices, values, strict=True)}


def rows(text: str) -> dict[tuple[int, int], list[int]]:
    return {device: row[:_COUNTERS] for device, row in read(("io.stat",), (text.encode(),)).items()}


def blkio(service_bytes: bytes, serviced: bytes) -> dict[tuple[int, int], list[int]]:
    return {device: row[:_COUNTERS] for device, row in read(_V1, (service_bytes, serviced)).items()}


def test_lines_of_a_stock_kernel() -> None:
    assert rows(f"253:0 {_SIX}\n8:16 rbytes=9 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n") == {
        (253, 0): [1, 2, 3, 4, 5, 6, *[_NONE] * 5],
        (8, 16): [9, 0, 1, 0, 0, 0, *[_NONE] * 5],
    }


def test_cost_columns_where_only_some_devices_have_them() -> None:
    assert rows(f"253:0 {_SIX} cost.vrate=103.07 {_COSTS}\n8:0 {_SIX}\n8:16 {_SIX} cost.usage=7\n") == {
        (253, 0): [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10307],
        (8, 0): [1, 2, 3, 4, 5, 6, *[_NONE] * 5],
        (8, 16): [1, 2, 3, 4, 5, 6, 7, *[_NONE] * 4],
    }


def test_words_of_other_kernels_are_passed_over() -> None:
    stat = f"8:0 {_SIX} use_delay=0 delay_nsec=0 depth=max avg_lat=12 win=100\n8:16 {_SIX} new.word=4 cost.usage=7\n"
    assert rows(stat) == {(8, 0): [1, 2, 3, 4, 5, 6, *[_NONE] * 5], (8, 16): [1, 2, 3, 4, 5, 6, 7, *[_NONE] * 4]}


def test_a_device_without_numbers_has_no_row() -> None:
    assert rows(f"8:0 \n\n(unknown) {_SIX}\n8:16 {_SIX}\n") == {(8, 16): [1, 2, 3, 4, 5, 6, *[_NONE] * 5]}
    assert rows("") == {}


@pytest.mark.slow
@given(st.text(alphabet="0123456789:=. \nrbytesmaxcost.ugé-", max_size=200) | st.binary().map(str))
def test_no_text_fails(text: str) -> None:
    rows(text)
    io_max(text.encode())
    blkio(text.encode(), text.encode())
    blkio_limits([text.encode()] * 4)
    read(("io.stat",), (f"8:0 {_SIX}\n".encode(),), text.encode())


def test_numbers_beyond_any_counter_are_missing() -> None:
    assert rows(f"8:0 {_SIX.replace('=1 ', '=99999999999999999999999 ')}\n")[8, 0][:2] == [_NONE, 2]


def test_limits() -> None:
    text = b"253:0 rbps=max wbps=1048576 riops=500 wiops=max\n8:0 rbps=1\n"
    assert io_max(text) == {(253, 0): (_NONE, 1048576, 500, _NONE), (8, 0): (1, _NONE, _NONE, _NONE)}
    assert blkio_limits([b"7:3 10485760\n", b"", b"", b"7:3 100\n8:0 5\n"]) == {
        (7, 3): (10485760, _NONE, _NONE, 100),
        (8, 0): (_NONE, _NONE, _NONE, 5),
    }


def test_counters_of_cgroup_v1() -> None:
    def lines(*counts: int, device: str) -> str:
        kinds = ("Read", "Write", "Sync", "Async", "Discard", "Total")
        return "".join(f"{device} {kind} {count}\n" for kind, count in zip(kinds, counts, strict=True))

    amounts = lines(4096, 512, 1, 2, 77, 4685, device="7:3") + lines(1, 2, 3, 4, 5, 8, device="8:16") + "Total 4693\n"
    ios = lines(1, 2, 3, 0, 4, 7, device="7:3") + lines(6, 7, 8, 9, 10, 23, device="8:16") + "Total 30\n"
    wanted = {(7, 3): [4096, 512, 1, 2, 77, 4, *[_NONE] * 5], (8, 16): [1, 2, 6, 7, 5, 10, *[_NONE] * 5]}
    assert blkio(amounts.encode(), ios.encode()) == wanted
    other_order = lines(6, 7, 8, 9, 10, 23, device="8:16") + lines(1, 2, 3, 0, 4, 7, device="7:3")
    assert blkio(amounts.encode(), other_order.encode()) == wanted


def test_counters_of_older_kernels_have_no_discards() -> None:
    service_bytes = b"7:3 Read 4096\n7:3 Write 512\n7:3 Sync 1\n7:3 Async 2\n7:3 Total 4608\nTotal 4608\n"
    counts = blkio(service_bytes, b"7:3 Read 1\n7:3 Write 2\nTotal 3\n")
    assert counts == {(7, 3): [4096, 512, 1, 2, *[_NONE] * 7]}
    assert blkio(b"Total 0\n", b"Total 0\n") == {}


@pytest.mark.parametrize(
    ("text", "stalls"),
    [
        (b"some avg10=1.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n", [12, 7]),
        (b"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n", [12, _NONE]),
        (b"", [_NONE, _NONE]),
        (b"some\nfull total=x\n", [_NONE, _NONE]),
    ],
)
def test_pressure(text: bytes, stalls: list[int]) -> None:
    assert read(("io.stat",), (f"8:0 {_SIX}\n".encode(),), text)[8, 0][_COUNTERS:] == stalls


def test_files_larger_than_a_page_are_read_whole() -> None:
    devices = range(500)
    stat = "".join(f"8:{minor} {_SIX}\n" for minor in devices)
    assert list(rows(stat)) == [(8, minor) for minor in devices]


def test_a_group_before_the_one_above_it_is_refused() -> None:
    with pytest.raises(ValueError, match="before the group above"):
        GroupReader(["io.stat"]).follow([(1, "/nowhere", 1)])
    with pytest.raises(ValueError, match="neither one file nor two"):
        GroupReader([])
