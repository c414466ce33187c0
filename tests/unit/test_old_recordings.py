"""Recordings of version 0.1.0 stay readable, and what is said of them keeps every key and value it had.

`tests/recordings` holds sessions of that version beside what it printed of them: a load on two loop devices with exact
time, a dm-multipath LUN under load, estimated queue and service time, a tape drive. Keys and rows may be added later;
none may vanish or change.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui.cli import run_cli

RECORDINGS = Path(__file__).parents[1] / "recordings"
SESSIONS = sorted(path.stem for path in RECORDINGS.glob("*.luns"))
COMMANDS = {
    "report.jsonl": ("report", "--json", "--from"),
    "export.jsonl": ("export", "--format", "jsonl"),
    "scan.json": ("scan", "--json", "--from"),
}


def missing_from(now: Any, before: Any, place: str = "") -> Iterator[str]:
    """Every place at which `now` lacks or changes something of `before`; rows are matched by id and name.

    What was not known (null, an empty text) may have become known.
    """
    if before is None or before == "":
        return
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            if key in now:
                yield from missing_from(now[key], value, f"{place}.{key}")
            else:
                yield f"{place}.{key} is gone"
    elif isinstance(before, list) and isinstance(now, list) and all(_id(item) for item in before):
        rows = {_id(item): item for item in now}
        for item in before:
            yield from missing_from(rows.get(_id(item)), item, f"{place}[{_id(item)}]")
    elif isinstance(before, float) and isinstance(now, (int, float)):
        if not math.isclose(now, before, rel_tol=1e-6, abs_tol=1e-9):
            yield f"{place}: {before} became {now}"
    elif now != before:
        yield f"{place}: {before!r} became {now!r}"


def _id(item: Any) -> Any:
    if not isinstance(item, dict) or not item.keys() & {"id", "key"}:
        return None
    return item.get("id", item.get("key")), item.get("name")


def by_row(documents: list[dict[str, Any]]) -> dict[Any, Any]:
    """Documents by what they are about, so that further ones may stand between them."""
    return {(document.get("time"), document.get("table"), _id(document)): document for document in documents}


@pytest.fixture(autouse=True)
def _in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def test_there_are_recordings() -> None:
    assert len(SESSIONS) == 4


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("session", SESSIONS)
def test_what_is_said_of_it_keeps_all_it_had(session: str, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*COMMANDS[kind], str(RECORDINGS / f"{session}.luns")]
    assert run_cli(command) == 0
    now = by_row([json.loads(line) for line in capsys.readouterr().out.splitlines()])
    before = by_row([json.loads(line) for line in (RECORDINGS / f"{session}.{kind}").read_text().splitlines()])
    lost = [line for key, document in before.items() for line in missing_from(now.get(key), document, str(key))]
    assert not lost, "\n".join(lost[:20])
