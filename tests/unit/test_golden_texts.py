"""What people type and write in files, and what is made of it: tests/unit/golden/texts has a file for each reader.

An input that begins with a quote is a line in JSON, as blanks and odd characters count there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from collectors.alerts.alert_settings import load_alert_settings
from collectors.alerts.parse import parse_rule
from collectors.compare.part import PartText
from collectors.filtering.parse import read_filter
from collectors.session.time_format import parse_when
from engine.isolation.caps import parse_cap
from engine.job.distribution_text import parse_distribution
from engine.job.file import dump_job, parse_job
from engine.job.formats.ndisk import read_ndisk
from engine.job.rate_floor import parse_rate_floor
from engine.job.scenario import dump_scenario, parse_scenario
from engine.job.sizes import parse_blocks, parse_duration, parse_size
from engine.job.target_text import format_target, parse_lun, parse_target
from engine.rate_search.plan import parse_rate_range
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from tests.golden import assert_golden
from tests.unit.test_filtering import FIELDS, found
from tui.settings import load_settings
from tui.theming import ThemeError, parse_theme

FOLDER = Path(__file__).parent / "golden" / "texts"
ZONE = timezone(timedelta(hours=2))
START = datetime(2025, 11, 21, 22, 30, 0, 500_000, ZONE)
END = datetime(2025, 11, 22, 6, 0, tzinfo=ZONE)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _ns(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def _moment(text: str) -> str:
    """Between a start and an end two hours east of Greenwich."""
    return str(EPOCH + timedelta(microseconds=parse_when(text, _ns(START), _ns(END), ZONE) // 1000))


def _axis(text: str) -> str:
    axis = parse_axis(text)
    assert parse_axis(axis.text) == axis
    return repr(axis.values)


def _limit(text: str) -> str:
    limit = Limit.parse(text)
    assert Limit.parse(limit.text) == limit
    return repr(limit)


def _cap(text: str) -> str:
    cap = parse_cap(text)
    assert parse_cap(cap.text) == cap
    return repr(cap)


def _rate_floor(text: str) -> str:
    floor = parse_rate_floor(text)
    assert parse_rate_floor(floor.text) == floor
    return repr(floor)


def _rate_range(text: str) -> str:
    found = parse_rate_range(text)
    assert found is None or parse_rate_range(found.text) == found
    return repr(found)


def _target(text: str) -> str:
    target = parse_target(text)
    assert parse_target(format_target(target)) == target
    return repr(target)


def _rule(text: str) -> str:
    rule = parse_rule(text)
    assert parse_rule(rule.condition, rule.name) == rule
    return repr(rule)


def _filter(text: str) -> str:
    problem = read_filter(text, FIELDS).problem
    return ", ".join(found(text)) or "none" if problem is None else f"character {problem.position + 1}: {problem.text}"


def _job(text: str) -> str:
    return dump_job(parse_job(text, "job.toml")).strip()


def _scenario(text: str) -> str:
    """After the head of a scenario, unless it has one of its own."""
    head = (
        "" if "schema" in text or text in ("", "x = [") else 'schema = "lunscope.scenario/1"\n[job]\nruntime = "30s"\n'
    )
    return dump_scenario(parse_scenario(head + text, "s.toml")).strip()


def _ndisk(text: str) -> str:
    Path("cache.ndisk").write_text(f"* a comment\n{text}\n")
    found = read_ndisk(Path("cache.ndisk"))
    return "\n".join((dump_scenario(found.scenarios[0]).strip(), *found.warnings))


def _alert_settings(text: str) -> str:
    Path("config.toml").write_text(text)
    return "\n".join(load_alert_settings(Path("config.toml")).problems) or "no problems"


def _settings(text: str) -> str:
    Path("config.toml").write_text(text)
    return "\n".join(load_settings(Path("config.toml")).problems) or "no problems"


def _theme(text: str) -> str:
    try:
        return parse_theme(text, "mine.toml").name
    except ThemeError as error:
        return f"refused: {error}"


READERS: dict[str, Callable[[str], str]] = {
    "alert_rules": _rule,
    "alert_settings": _alert_settings,
    "axes": _axis,
    "blocks": lambda text: repr(parse_blocks(text)),
    "caps": _cap,
    "distributions": lambda text: repr(parse_distribution(text)),
    "durations": lambda text: repr(parse_duration(text)),
    "filters": _filter,
    "jobs": _job,
    "limits": _limit,
    "luns": lambda text: repr(parse_lun(text)),
    "moments": _moment,
    "ndisk": _ndisk,
    "parts": lambda text: repr(PartText.parse(text)),
    "rate_floors": _rate_floor,
    "rate_ranges": _rate_range,
    "scenarios": _scenario,
    "settings": _settings,
    "sizes": lambda text: repr(parse_size(text)),
    "targets": _target,
    "themes": _theme,
}


def test_every_file_has_its_reader() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == READERS.keys()


@pytest.mark.parametrize("name", READERS)
def test_texts_mean_what_was_accepted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def say(text: str) -> str:
        said = READERS[name](json.loads(text) if text.startswith('"') else text)
        assert said.replace("\n", "").isprintable()
        return said

    assert_golden(FOLDER / f"{name}.txt", say)
