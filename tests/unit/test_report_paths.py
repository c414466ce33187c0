"""`report -L` and `-H`: paths and ports as text and JSON."""

from __future__ import annotations

import json

from collectors.model import Step
from collectors.reports.report import ReportOptions, report_json, report_text
from engine.replacing import replace
from tests.unit.raw_samples import disks, sample
from tests.unit.test_block_tables import WHO, did, topology

ABOUT = topology()


def steps() -> list[Step]:
    """Two seconds: one path of the first LUN does 600 I/Os of 1 ms, then the other 200 of 11 ms."""
    moments: tuple[dict[str, dict[str, int]], ...] = (
        {},
        {"sd0h0": did(600, 1, 500)},
        {"sd0h0": did(600, 1, 500), "sd0h1": did(200, 11, 1000)},
    )
    samples = [
        sample(at, disks=disks(WHO, *(of.get(name, {}) for name in WHO.names)), topology=ABOUT)
        for at, of in enumerate(moments, start=1)
    ]
    return [Step(None, samples[0]), Step(samples[0], samples[1]), Step(samples[1], samples[2])]


def test_paths_are_named_by_lun_and_port_and_averaged_over_the_whole_report() -> None:
    lines = list(report_text(steps(), ReportOptions(("paths",))))
    at = next(place for place, line in enumerate(lines) if line.startswith("Average:"))
    assert "path" in lines[at]
    averages = {tuple(line.split()[1:4]): line.split()[4:] for line in lines[at + 2 :]}
    assert averages["dm-0", "sd0h0", "host0"][:1] == ["300.0"]
    assert averages["dm-0", "sd0h0", "host0"][-1] == "75.0"
    assert averages["dm-0", "sd0h1", "host1"][:1] == ["100.0"]
    assert averages["dm-0", "sd0h1", "host1"][-1] == "25.0"


def test_ports_show_their_busy_time_as_a_range() -> None:
    lines = list(report_text(steps(), ReportOptions(("hbas",))))
    header = next(line for line in lines if "port" in line)
    assert header.split()[-2:] == ["Busy<=", "%limit"]
    first = next(line for line in lines if "host0+nvme0 fc" in line)
    assert first.split()[3:5] == ["600.0", "2400.0"]


def test_json_has_what_joins_paths_luns_and_ports() -> None:
    lines = [json.loads(line) for line in report_json(steps())]
    for table in ("disks", "paths", "hbas"):
        names = [[row["name"] for row in line[table]] for line in lines]
        assert names[0] == names[1]
    document = lines[0]
    path, idle = document["paths"][:2]
    assert (idle["name"], idle["iops"]) == ("sd0h1", 0)
    assert (path["name"], path["lun"], path["port"], path["usable"]) == ("sd0h0", "dm-0", "host0", True)
    assert (path["iops"], path["lun_share_pct"], path["limit_pct"]) == (600, 100, 7.5)
    port = document["hbas"][0]
    assert (port["name"], port["members"], port["busy_low_pct"]) == ("host0+nvme0", ["host0", "nvme0"], 50)


def test_a_lun_has_both_its_names_and_is_joined_by_the_one_people_use() -> None:
    key = next(device.key for device in ABOUT.devices.values() if device.name == "dm-0")
    named = replace(ABOUT, devices={**ABOUT.devices, key: replace(ABOUT.devices[key], friendly_name="mpatha")})
    load = {"dm-0": did(600, 1, 500), "sd0h0": did(600, 1, 500)}
    moments = [
        sample(at, disks=disks(WHO, *(of.get(name, {}) for name in WHO.names)), topology=named)
        for at, of in enumerate(({}, load), start=1)
    ]
    both = [Step(None, moments[0]), Step(moments[0], moments[1])]
    assert any(line.split()[1:3] == ["dm-0", "mpatha"] for line in report_text(both, ReportOptions(("disks",))))
    document = json.loads(next(iter(report_json(both))))
    assert ("dm-0", "mpatha") in [(disk["name"], disk["label"]) for disk in document["disks"]]
    assert [path["lun"] for path in document["paths"] if path["iops"]] == ["mpatha"]


def test_a_sick_path_is_named_below_the_paths() -> None:
    both = {"sd0h0": did(600, 1, 500), "sd0h1": did(200, 11, 1000)}
    moments = [
        sample(at, disks=disks(WHO, *(of.get(name, {}) for name in WHO.names)), topology=ABOUT)
        for at, of in enumerate(({}, both), start=1)
    ]
    lines = list(report_text([Step(None, moments[0]), Step(moments[0], moments[1])], ReportOptions(("paths",))))
    assert any(line.endswith("! path sd0h1 carries 25 % of dm-0 and its await is 11.0x its peers'") for line in lines)
