"""What is registered once is named where users look for it, and where checks look for verbs."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

from collectors.advice.finding import FindingKind
from collectors.alerts.rule import RuleKind
from collectors.registry import TABLES, subject_of
from engine.job.choices import PathPolicy
from engine.job.fixed_settings import HEAD, TAIL
from engine.job.formats.fio_job import DRIVEN
from engine.results.badge import BadgeKind
from engine.sweep.knee import Shape
from engine.sweep.presets.registry import PRESETS
from engine.tune.registry import TUNABLES
from tests.kernel import test_every_verb
from tui.cli import VERBS
from tui.settings import NAMES, SCREEN_NAMES
from tui.theming import BUNDLED

REPOSITORY = Path(__file__).parents[2]
ON_SCREENS = {"watch", "replay"}
"""Verbs that have no use without a terminal."""
PART_OF_FLEET = "agent"
OF_FLEETS = {"fleet", PART_OF_FLEET}
"""Verbs whose surroundings are other hosts: tests/kernel has files of their own for them."""


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ("README.md", [f"`{verb}" for verb in VERBS if verb != PART_OF_FLEET]),
        ("README.md", [f"[{report.option}]" for table in TABLES if (report := subject_of(table).report)]),
        ("docs/tune.md", [f"`{tunable.id}`" for tunable in TUNABLES]),
        ("docs/sweeps.md", [f"`{preset}`" for preset in PRESETS]),
        ("docs/sweeps.md", list(Shape)),
        ("docs/alerts.md", list(RuleKind)),
        ("docs/alerts.md", [f"`{table}`" for table in TABLES]),
        ("docs/jobs.md", [f"`{option}" for option in DRIVEN]),
        ("docs/settings.md", [*NAMES, *SCREEN_NAMES]),
        ("docs/load.md", [f"`{kind}`" for kind in BadgeKind]),
        ("docs/load.md", [f"`{policy}`" for policy in PathPolicy]),
        ("docs/terminal.md", [f"`lunscope-{theme}`" for theme in BUNDLED]),
    ],
)
def test_names_are_documented(document: str, names: Iterable[str]) -> None:
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    assert [name for name in names if name not in text] == []


def test_settings_of_jobs_are_documented() -> None:
    text = "".join((REPOSITORY / "docs" / name).read_text(encoding="utf-8") for name in ("load.md", "jobs.md"))
    names = {setting.key: (f"`{setting.key}", f"`--{setting.key.replace('_', '-')}") for setting in (*HEAD, *TAIL)}
    assert [key for key, written in names.items() if not any(name in text for name in written)] == []


def test_findings_are_documented() -> None:
    text = "".join((REPOSITORY / "docs" / name).read_text(encoding="utf-8") for name in ("load.md", "sweeps.md"))
    assert [kind.value for kind in FindingKind if f"`{kind.value}`" not in text] == []


def test_verbs_without_screens_are_in_the_contract_of_imports() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (contract,) = (each for each in contracts if "tui.cli" in each.get("source_modules", ()))
    named = {module.removeprefix("tui.commands.") for module in contract["source_modules"]}
    assert named >= VERBS.keys() - ON_SCREENS


def test_every_verb_is_run_in_bad_surroundings() -> None:
    run = {arguments[0] for arguments in test_every_verb.VERBS.values() if arguments}
    assert run >= VERBS.keys() - OF_FLEETS
