"""Which processes are kept, from a fake PROCFS."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.tables.process.reader import MAX_PROCESSES, ProcessCollector, ProcessScanner
from collectors.tables.process.schema import PROCESS
from tests.fake_kernel import FakeKernel


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def test_only_processes_whose_bytes_moved_are_kept(kernel: FakeKernel) -> None:
    for pid in (10, 11, 12):
        kernel.write_process(pid, b"worker", read_bytes=4096)
    scanner = ProcessScanner(str(kernel.procfs))
    assert scanner.scan() == ()
    kernel.write_process(11, b"worker", read_bytes=8192, syscr=3)
    kernel.write_process(12, b"worker", read_bytes=4096, syscr=3)
    (process,) = scanner.scan()
    assert (process.key, process.name, process.deltas) == ("11:100", "worker", (11, 4096, 0, 0, 3, 0))
    assert [process.deltas[1:] for process in scanner.scan()] == [(0, 0, 0, 0, 0)]


def test_a_new_process_counts_from_zero_and_a_dead_one_goes(kernel: FakeKernel) -> None:
    scanner = ProcessScanner(str(kernel.procfs))
    scanner.scan()
    kernel.write_process(20, b"dd", write_bytes=1 << 20)
    assert [process.name for process in scanner.scan()] == ["dd"]
    (kernel.procfs / "20/io").unlink()
    assert scanner.scan() == ()


def test_a_pid_used_again_is_another_process(kernel: FakeKernel) -> None:
    scanner = ProcessScanner(str(kernel.procfs))
    scanner.scan()
    kernel.write_process(20, b"one", started=100, read_bytes=1000)
    first = scanner.scan()[0].key
    kernel.write_process(20, b"two", started=900, read_bytes=500)
    second = scanner.scan()[0]
    assert second.key != first
    assert (second.name, second.deltas[1]) == ("two", 500)


def test_names_are_data(kernel: FakeKernel) -> None:
    scanner = ProcessScanner(str(kernel.procfs))
    scanner.scan()
    kernel.write_process(20, b"a) S (b\x1b[2J\xff", read_bytes=1)
    assert scanner.scan()[0].name == "a) S (b\x1b[2J\\xff"


def test_the_most_active_come_first_and_there_are_not_too_many(kernel: FakeKernel) -> None:
    scanner = ProcessScanner(str(kernel.procfs))
    scanner.scan()
    for pid in range(100, 100 + 2 * MAX_PROCESSES):
        kernel.write_process(pid, b"p", read_bytes=pid)
    found = scanner.scan()
    assert len(found) == MAX_PROCESSES
    assert found[0].deltas[0] == 99 + 2 * MAX_PROCESSES


def test_half_written_files_are_not_fatal(kernel: FakeKernel) -> None:
    scanner = ProcessScanner(str(kernel.procfs))
    scanner.scan()
    kernel.write_proc("30/io", "read_bytes: x\nrubbish")
    kernel.write_proc("31/io", "read_bytes: 5\n")
    kernel.write_proc("31/stat", "rubbish")
    kernel.write_proc("32/io", "")
    assert scanner.scan() == ()


def test_a_host_without_processes_has_an_empty_table(kernel: FakeKernel) -> None:
    collector = ProcessCollector(str(kernel.procfs))
    table = collector.read().tables["process"]
    assert table.values.shape == (0, len(PROCESS.columns))
    collector.close()
