"""A probe helper with a reader of it, for the tests of what they say to each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.exact.probe.client import HelperTracer, connect
from tests.unit.probe_server import Helper


@pytest.fixture
def helper(tmp_path: Path) -> Iterator[Helper]:
    helper = Helper(tmp_path / "probe.sock")
    yield helper
    helper.end()


@pytest.fixture
def reader(helper: Helper) -> Iterator[HelperTracer]:
    reader = connect(helper.path)
    yield reader
    reader.close()
