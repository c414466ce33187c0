"""An alert on a real device under load: recorded, reported, exported, and given to a command."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.session.reader import SessionReader
from tests import needs
from tests.kernel.forked_command import lunscope
from tests.kernel.test_live_loop import Load

pytestmark = needs.loop


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return lunscope(*arguments, env=os.environ | {"XDG_CONFIG_HOME": str(folder)})


def test_a_busy_device_raises_an_alert_in_the_recording(make_loop: Callable[..., str], tmp_path: Path) -> None:
    loop = make_loop(8 << 20)
    session, said, name = tmp_path / "s.luns", tmp_path / "said", Path(loop).name
    program = tmp_path / "notify"
    program.write_text(f'#!/bin/sh\necho "$LUNSCOPE_ALERT_RULE $LUNSCOPE_ALERT_OBJECT" >>{said}\n')
    program.chmod(0o755)
    load = Load(loop, threads=1)
    try:
        rule = f"busy: disks iops>1 for 1s on {name}"
        options = ("--alert", rule, "--alert-command", str(program))
        done = run(
            "record",
            "-o",
            str(session),
            "--interval",
            "0.2",
            "--duration",
            "4",
            "--tier",
            "kernel",
            *options,
            folder=tmp_path,
        )
    finally:
        load.close()
    assert done.returncode == 0, done.stderr
    with SessionReader(session) as reader:
        alerts = [event for event in reader.events() if event.data.get("rule") == "busy"]
    raised = alerts[0]
    assert raised.data["change"] == "raised"
    assert str(raised.data["object"]).split()[0] == name
    assert said.read_text().split()[:2] == ["busy", name]
    report = run("report", "--from", str(session), "0.2", folder=tmp_path)
    assert f"alert busy raised: {name}" in report.stdout
    export = run("export", str(session), "--format", "jsonl", "--table", "events", folder=tmp_path)
    rows = [json.loads(line) for line in export.stdout.splitlines()]
    assert any(row["kind"] == "alert" and row["data"]["object"].split()[0] == name for row in rows)
    table = run("export", str(session), "--format", "csv", "--table", "events", folder=tmp_path)
    assert table.stdout.startswith("time,time_ns,kind,text,data\n")


LOAD = ("--size", "1m", "--interval", "0.2", "--rate", "500", "--tier", "kernel")


@pytest.mark.waits
@pytest.mark.parametrize(
    "verb",
    [("run", "--headless", "--runtime", "2s", *LOAD), ("sweep", "--headless", "--vary", "qd=1", *LOAD)],
    ids=lambda verb: verb[0],
)
def test_loads_that_are_recorded_have_the_alerts_of_the_settings(verb: tuple[str, ...], tmp_path: Path) -> None:
    settings, session = tmp_path / "lunscope" / "config.toml", tmp_path / "s.luns"
    settings.parent.mkdir()
    settings.write_text("[alerts.rules]\nbusy = 'load_total iops>1 for 0s'\n")
    done = run(*verb, "--scratch-dir", str(tmp_path), "--record", str(session), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with SessionReader(session) as reader:
        alerts = [event for event in reader.events() if event.data.get("rule") == "busy"]
    assert alerts[0].data["change"] == "raised"
