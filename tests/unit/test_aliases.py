"""Names the operator gave, by identity, in the graph and in reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.reports.scan_tree import tree_lines
from collectors.sampling.reading_settings import ReadingSettings, load_reading_settings, plain_identity
from collectors.topology.scanner import read_topology
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_fc_disk, add_fc_host, add_tape
from tui.cli import run_cli


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    (tmp_path / "tree").mkdir()
    return FakeKernel(tmp_path / "tree")


def settings(tmp_path: Path, text: str) -> ReadingSettings:
    (tmp_path / "config.toml").write_text(text)
    return load_reading_settings(tmp_path / "config.toml")


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ("36000C29A", "naa.6000c29a"),
        ("mpath-36000c29a", "36000c29a"),
        ("10:00:00:90:FA:00:00:01", "0x10000090fa000001"),
        ("0x10000090fa000001", "10000090fa000001"),
        ("eui.0025385", "20025385"),
        ("uuid.12-34", "uuid.12-34"),
        ("0000:00:03.0", "0000:00:03.0"),
    ],
)
def test_spellings_of_one_identity(written: str, known: str) -> None:
    assert ReadingSettings({plain_identity(written): "x"}).alias_of("", known) == "x"


def test_names_reach_luns_ports_targets_and_tapes(kernel: FakeKernel, tmp_path: Path) -> None:
    FakeScsi(kernel, hosts=2, luns=2).build()
    folder = add_fc_host(kernel, 7, "0x10000090fa000001")
    add_fc_disk(kernel, "sdx", folder, 7, target_wwpn="0x5000000000000aaa", minor=208)
    add_tape(kernel, 0)
    text = """
[aliases]
"3600000000000" = "oracle data"
"0000:00:04.0" = "right card"
"10:00:00:90:fa:00:00:01" = "fabric A"
"0x5000000000000aaa" = "array 1 port 2"
"naa.5000000000000000" = "drive 1"
"""
    topology = read_topology(kernel.procfs, kernel.sysfs, settings(tmp_path, text))
    labels = {device.name: device.friendly_name for device in topology.devices.values()}
    assert labels["dm-0"] == "oracle data"
    assert (labels["dm-1"], labels["sda"]) == ("mpath1", "")
    assert {port.name: port.label for port in topology.graph.ports} == {
        "host0": "", "host1": "right card", "host7": "fabric A",
    }  # fmt: skip
    lines = "\n".join(tree_lines(topology))
    for words in ("oracle data (dm-0)", "host1  right card", "fabric A -> array 1 port 2", "tape st0  drive 1"):
        assert words in lines


def test_kernel_names_are_no_identities(kernel: FakeKernel, tmp_path: Path) -> None:
    FakeScsi(kernel, hosts=1, luns=1, maps=False).build()
    topology = read_topology(kernel.procfs, kernel.sysfs, settings(tmp_path, '[aliases]\nsda = "mine"\nhost0 = "b"\n'))
    assert all(not device.friendly_name for device in topology.devices.values())
    assert all(not port.label for port in topology.graph.ports)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("aliases = 3", "aliases must be a table"),
        ('[aliases]\n"36000" = 5', "36000: give a name"),
        ('[aliases]\n"36000" = ""', "36000: give a name"),
        ('[aliases]\n"36000" = "a\\u001b[2Jb"', "36000: give a name"),
        ('[aliases]\n"naa.6000" = "a"\n"36000" = "b"', "36000 has two names: 'a' and 'b'"),
        ("fabric_counters = 3", "fabric_counters must be true or false"),
        ("[exact_time]\nbtf = 3", "btf: give the path of a file"),
        ("[exact_time]\nmost_cost_pct = 101", "most_cost_pct: give a percentage"),
        ("[exact_time]\nlimit = 1", "has most_cost_pct and btf only"),
        ("exact_time = 1", "has most_cost_pct and btf only"),
        ("[aliases", "config.toml:"),
    ],
)
def test_what_cannot_be_used_is_reported_and_left_out(tmp_path: Path, text: str, words: str) -> None:
    found = settings(tmp_path, text)
    assert len(found.problems) == 1
    assert words in found.problems[0]
    assert "\x1b" not in found.problems[0]


def test_verbs_take_names_from_the_config_folder(
    kernel: FakeKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    FakeScsi(kernel, hosts=1, luns=1).build()
    (tmp_path / "lunscope").mkdir()
    (tmp_path / "lunscope/config.toml").write_text('[aliases]\n"3600000000000" = "oracle data"\n"1" = 2\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert run_cli(["scan", "--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]) == 0
    printed = capsys.readouterr()
    assert "oracle data (dm-0)" in printed.out
    assert "[aliases] 1: give a name" in printed.err
