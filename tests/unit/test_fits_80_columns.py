"""What one decides from is not cut at 80 columns."""

from __future__ import annotations

import pytest

from collectors.latency.slow_calls import SlowCall
from collectors.latency.slow_ios import SlowIo
from tui.load.form import FORM, FormField
from tui.screens.details import _two_columns
from tui.screens.latency.latency_text import CALLS_HEAD, SLOW_HEAD, call_line, slow_line

HINT_CELLS = 44
"""Cells that a hint of the load form has beside its field and the scrollbar."""


@pytest.mark.parametrize("field", [field for field in FORM if field.id != "targets"], ids=lambda field: field.id)
def test_hints_of_the_load_form(field: FormField) -> None:
    assert len(field.hint) <= HINT_CELLS


def test_a_pid_of_seven_digits_and_its_process() -> None:
    times_ns = (1_000_000, 2_000_000, 3_000_000)
    io = SlowIo(0, 259, 0, "key", "nvme10n1", "discard", 1 << 31, 4096, *times_ns, 4_194_304, "postgres", None)
    line = slow_line(io, {})
    assert line.plain[:80].endswith("4194304 postgres       ")
    assert SLOW_HEAD[:80].index("PID") + 3 == line.plain.index("4194304") + 7


def test_times_of_a_slow_nfs_call_and_its_process() -> None:
    times_ns = (1_000_000, 2_000_000, 3_000_000)
    call = SlowCall(0, "key", "/mnt/a-long-name", "EXCHANGE_ID", "16", *times_ns, 0xABCD, 4_194_304, "postgres")
    line = call_line(call)
    assert line.plain[:80].endswith("EXCHANGE_ID 16  1.00  2.00  3.00 4194304 postgres   ")
    assert line.plain.endswith(" 0000abcd")
    for title, value in (("PID", "4194304"), ("RTT", "2.00"), ("XID", "0000abcd")):
        assert CALLS_HEAD.index(title) + 3 == line.plain.index(value) + len(value)


def test_limits_of_a_disk() -> None:
    limits = ("limits", "nr_requests 1024, queue_depth 4096")
    facts = [("number", "7:2, sequence 135522"), ("name", "sda"), limits, ("scheduler", "none")]
    first, second = _two_columns(facts, 80).plain.splitlines()
    assert first.endswith(limits[1])
    assert "7:2, sequence 135522" in first
    assert len(first) <= 80
    assert first.index("limits") == second.index("scheduler")
