"""Which sweeps have a screen: all of them on a terminal, unless something else was asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import tui.commands.sweep as verb

TERMINAL = SimpleNamespace(isatty=lambda: True)


@pytest.mark.parametrize("axes", [("--vary", "qd=1,2", "--open-loop"), ("--slo", "p99<=5ms"), ("--vary", "rate=..100")])
@pytest.mark.parametrize(("option", "has_screen"), [((), True), (("--headless",), False), (("--json",), False)])
def test_rates_and_open_loops_have_a_screen(
    axes: tuple[str, ...], option: tuple[str, ...], has_screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def search(_job: Any, _asked: Any, _permissions: Any, output: Any) -> int:
        seen.append(output.on_screen is not None)
        return 0

    monkeypatch.setattr(verb, "sys", SimpleNamespace(stdin=TERMINAL, stdout=TERMINAL))
    monkeypatch.setattr(verb, "search_rates", search)
    done = CliRunner().invoke(verb.command, [*axes, *option], standalone_mode=False)
    assert done.exception is None
    assert seen == [has_screen]
