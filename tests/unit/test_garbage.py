"""Full garbage collections wait until nobody types, and come when one is due."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tui.process import garbage
from tui.process.garbage import COLLECTIONS_UNTIL_OLDER, MOST_UNTIL_FULL, IdleCollection


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.fixture
def collection(monkeypatch: pytest.MonkeyPatch) -> IdleCollection:
    monkeypatch.setattr(garbage, "IDLE_S", 0.0)
    collection = IdleCollection()
    collection.begin()
    return collection


def make_due() -> None:
    gc.collect()
    for _ in range(COLLECTIONS_UNTIL_OLDER):
        gc.collect(1)


@pytest.mark.slow
def test_a_due_collection_comes_when_idle(collection: IdleCollection) -> None:
    make_due()
    assert collection.collect_if_idle()
    assert gc.get_count()[2] == 0


def test_none_without_garbage(collection: IdleCollection) -> None:
    gc.collect()
    assert not collection.collect_if_idle()


def test_none_while_somebody_types(collection: IdleCollection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "IDLE_S", 3600.0)
    collection.typed()
    make_due()
    assert not collection.collect_if_idle()


def test_python_collects_everything_by_itself_only_later(collection: IdleCollection) -> None:
    assert gc.get_threshold()[2] == MOST_UNTIL_FULL > COLLECTIONS_UNTIL_OLDER
    assert collection is not None
