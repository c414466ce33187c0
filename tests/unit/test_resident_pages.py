"""Pages in memory by mincore(2): exact for small files, a sample of large ones, nothing where it would not be true."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.tables.cache import page_caches
from collectors.tables.cache.page_caches import (
    MOST_PAGES,
    WINDOW_PAGES,
    PageCaches,
    may_ask,
    page_cache_values,
    resident_bytes,
    windows,
)
from collectors.tables.cache.reader import CacheCollector
from tests import needs

PAGE = mmap.PAGESIZE
NOBODY = 65534


@pytest.fixture
def sparse(tmp_path: Path) -> Iterator[int]:
    """A file of 1,024 pages without any in memory."""
    descriptor = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT)
    os.ftruncate(descriptor, 1024 * PAGE)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: int) -> dict[str, int]:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(page_caches, "_counted", absent)


def test_pages_are_counted_and_none_is_read(sparse: int) -> None:
    assert resident_bytes(sparse, 1024 * PAGE) == 0
    os.pwrite(sparse, b"x" * 3 * PAGE, 100 * PAGE)
    os.pwrite(sparse, b"x", 1023 * PAGE)
    assert resident_bytes(sparse, 1024 * PAGE) == 4 * PAGE
    assert resident_bytes(sparse, 1024 * PAGE) == 4 * PAGE
    assert resident_bytes(sparse, 0) == 0


def test_a_large_file_is_sampled(sparse: int) -> None:
    os.ftruncate(sparse, 8 * MOST_PAGES * PAGE)
    assert resident_bytes(sparse, 8 * MOST_PAGES * PAGE) == 0


@pytest.mark.parametrize("pages", [1, MOST_PAGES, MOST_PAGES + 1, 10 * MOST_PAGES + 7, 1 << 40])
def test_windows_are_bounded_apart_and_within(pages: int) -> None:
    found = windows(pages, 3)
    assert sum(count for _, count in found) <= MOST_PAGES
    assert all(before + count <= after for (before, count), (after, _) in itertools.pairwise(found))
    assert found[-1][0] + found[-1][1] <= pages
    assert found == windows(pages, 3)
    if pages > MOST_PAGES:
        assert {count for _, count in found} == {WINDOW_PAGES}
        assert found != windows(pages, 4) or pages == MOST_PAGES + 1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.93])
def test_the_sample_is_within_what_the_documents_say(share: float) -> None:
    pages = 40 * MOST_PAGES
    asked = [page for first, count in windows(pages, 0) for page in range(first, first + count)]
    in_one_run = sum(page < share * pages for page in asked)
    in_megabytes = sum(page % 256 < share * 256 for page in asked)
    assert [in_one_run / len(asked), in_megabytes / len(asked)] == pytest.approx([share, share], abs=4 * 0.016)


def test_without_cachestat_dirty_pages_are_not_known(sparse: int, old_kernel: None) -> None:
    os.pwrite(sparse, b"x" * PAGE, 0)
    assert page_cache_values(sparse) == {"size_bytes": 1024 * PAGE, "used_bytes": PAGE}


@needs.root
def test_who_neither_owns_nor_may_write_a_file_is_answered_with_the_reason(
    tmp_path: Path, old_kernel: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(4 * PAGE))
    file.chmod(0o644)
    descriptor = os.open(file, os.O_RDONLY)
    assert may_ask(descriptor)
    caches = PageCaches(lambda: [str(file)])
    assert [entry.values for entry in caches.entries()] == [{"size_bytes": 4 * PAGE, "used_bytes": 4 * PAGE}]
    caches.close()
    os.seteuid(NOBODY)
    try:
        assert not may_ask(descriptor)
        with pytest.raises(OSError, match="only its owner and those who may write it"):
            page_cache_values(descriptor)
    finally:
        os.seteuid(0)
    os.close(descriptor)
    monkeypatch.setattr(page_caches, "may_ask", lambda _: False)
    collector = CacheCollector(str(tmp_path), str(tmp_path), lambda: None, pages=PageCaches(lambda: [str(file)]))
    reading, again = collector.read(), collector.read()
    collector.close()
    (table,) = reading.tables.values()
    assert table.column("size_bytes").tolist() == [4 * PAGE]
    assert table.column("used_bytes").tolist() == table.column("dirty_bytes").tolist() == [2**64 - 1]
    assert [event.text.partition(":")[0] for event in reading.events] == [f"page cache of {file} is not known"]
    assert again.events == ()


def test_both_calls_give_one_answer(sparse: int) -> None:
    os.pwrite(sparse, b"x" * 64 * PAGE, 8 * PAGE)
    try:
        counted = page_caches._counted(sparse)["used_bytes"]
    except OSError as error:
        pytest.skip(f"cachestat(2): {error.strerror}")
    assert resident_bytes(sparse, 1024 * PAGE) == counted == 64 * PAGE
