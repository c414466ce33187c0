"""What the documents of runs and sweeps say of their host, their limits, and an open loop beside a closed one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from collectors.model import Device, HostFacts, Tier, Topology
from collectors.reports.documents.averages import DocumentOptions
from collectors.reports.documents.files import document_of
from collectors.reports.formats.html import html_lines
from collectors.reports.formats.md import markdown_lines
from collectors.reports.host_facts import host_document
from engine.running.status import LoadStatus
from engine.study.trial_file import TrialFile
from engine.sweep.document import sweep_document
from engine.sweep.trial import Trial
from tests.unit.documents.parsed import Page
from tests.unit.documents.test_run_and_sweep import GOLDEN, _result

FIRST_FIGURES = (
    *("load", "in_flight", "iops", "latency_ns", "half_width", "latencies_ns", "bytes_per_s"),
    *("start_s", "duration_s", "ios", "errors", "stop", "is_settled", "trend", "failing", "stage"),
)
"""Figures of a trial in the first files; all later ones must have a value where they are missing."""
TOPOLOGY = Topology(
    {
        "sda": Device(
            "sda",
            "sda",
            "disk",
            8,
            0,
            scheduler="mq-deadline",
            nr_requests=256,
            read_ahead_kb=4096,
            rotational=True,
            model="<disk>",
        ),
        "sdb": Device("sdb", "sdb", "disk", 8, 16, scheduler="kyber"),
    },
    HostFacts("db1\x1b", "6.18.0", "x86_64", 4, 8 << 30, tier=Tier.SAMPLED, notices=("a notice",), cpu_model="A CPU"),
)
HOST = host_document(TOPOLOGY, LoadStatus(targets=("/dev/sda",), devices=((8 << 8,),)), Path("/nowhere"))
FINDING = {
    "kind": "busy_device",
    "section": "limit",
    "confidence": "likely",
    "where": "qd=8",
    "text": "sda is busy 99 % while sdb is at 41 %",
    "evidence": [{"name": "sda busy", "value": 99.25, "unit": "%", "source": "exact"}],
}


def rate_trial(rate: float, iops: float, mean_us: float | None, stage: str = "step") -> dict[str, Any]:
    latencies = {"mean": mean_us, "p50": mean_us, "p99": mean_us, "p99_9": None}
    trial = {"rate": rate, "iops": iops, "stage": stage, "latency_us": latencies, "skipped": 7 if iops < rate else 0}
    return {**trial, "sustained": iops >= rate}


def search(*trials: dict[str, Any], limits: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"searches": [{"name": "", "trials": list(trials), "limits": list(limits)}]}


OPEN = search(
    rate_trial(99_000, 80_000, 9e5, "maximum"),
    rate_trial(1000, 1000, 100.0),
    rate_trial(2000, 2000, 300.0),
    rate_trial(3000, 2500, 90_000.0),
)


@pytest.fixture(params=["run", "sweep"])
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "run":
        found: dict[str, Any] = json.loads(GOLDEN.read_text())
        return found
    return json.loads(json.dumps(sweep_document(_result("qd=1,2,4,8"), ("disk a",))))  # type: ignore[no-any-return]


def page(tmp_path: Path, document: dict[str, Any]) -> Page:
    path = tmp_path / "document.json"
    path.write_text(json.dumps(document))
    return Page("\n".join(html_lines(document_of(path, DocumentOptions()))))


def test_host_and_its_settings_are_shown(tmp_path: Path, document: dict[str, Any]) -> None:
    assert [disk["name"] for disk in HOST["disks"]] == ["sda"]  # type: ignore[attr-defined]
    shown = page(tmp_path, {**document, "host": HOST})
    for text in ("Linux 6.18.0 x86_64", "4 A CPU", "8.0 GiB", "sampled:", "a notice", "As of the measurement"):
        assert text in shown.text
    (row,) = (row for row in shown.rows if row and row[0] == "sda")
    assert {"mq-deadline", "256", "4096", "<disk>"} <= set(row)


def test_without_a_host_that_is_said(tmp_path: Path, document: dict[str, Any]) -> None:
    assert "does not name its host" in page(tmp_path, document).text
    odd = {"hostname": 5, "cpus": "many", "disks": [1, {"name": None, "nr_requests": True}], "tier": []}
    assert "Report made by" in page(tmp_path, {**document, "host": odd}).text


def test_limits_are_shown_with_their_evidence(tmp_path: Path, document: dict[str, Any]) -> None:
    shown = page(tmp_path, {**document, "findings": [FINDING, {"evidence": 7}, {"evidence": [{"value": 1e300}]}]})
    assert "limit: sda is busy 99 % while sdb is at 41 % (likely) [qd=8] - sda busy 99.25 %" in shown.text


def test_trials_have_the_host_and_one_sweep_may_move_to_another(tmp_path: Path) -> None:
    result, path = _result("qd=1,2,4,8"), tmp_path / "trials"
    trials = result.curves[0].trials
    with TrialFile(path, result.plan) as file:
        for host in (HOST, HOST, {**HOST, "hostname": "db2"}):
            file.note_host(host)
            file.append(0, trials[0])
    with TrialFile(path, result.plan) as file:
        assert [trial for _, trial in file.done] == [trials[0]] * 3
        file.note_host({**HOST, "hostname": "db2"})
    assert path.read_bytes().count(b'{"host"') == 2
    shown = Page("\n".join(html_lines(document_of(path, DocumentOptions()))))
    assert "db2" in shown.text
    assert "mq-deadline" in shown.text


def test_trials_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    result, path = _result("qd=1,2,4,8"), tmp_path / "trials"
    trial = result.curves[0].trials[0]
    with TrialFile(path, result.plan) as file:
        file.append(0, trial)
    head, line = path.read_text().splitlines()
    first_line = {key: value for key, value in json.loads(line).items() if key in ("curve", *FIRST_FIGURES)}
    path.write_text(f"{head}\n{json.dumps(first_line)}\n")
    with TrialFile(path, result.plan) as file:
        assert [found for _, found in file.done] == [Trial(**{key: getattr(trial, key) for key in FIRST_FIGURES})]


def test_open_points_are_on_the_axes_of_the_closed_curve(tmp_path: Path) -> None:
    document = {**sweep_document(_result("qd=1,2,4,8"), ()), "open_loop": OPEN}
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(document))
    lines = "\n".join(html_lines(document_of(path, DocumentOptions())))
    shown = Page(lines)
    assert "mean latency, closed loop" in shown.text
    assert "mean latency, open loop" in shown.text
    assert lines.count("l5 5l-5 5l-5 -5Z") == 3
    assert lines.count('stroke-dasharray="5 4"') == 1
    rows = {row[0]: row for row in shown.rows if row and row[0] in {"1,000", "2,000", "3,000", "99,000"}}
    assert rows.keys() == {"1,000", "2,000", "3,000"}
    assert rows["3,000"][-1] == "not carried, 7 arrivals skipped"
    assert rows["2,000"][2] == "0.300"


def test_an_open_loop_alone_has_its_own_chart_and_its_limits(tmp_path: Path) -> None:
    limit = {"limit": "p99<=5ms", "verdict": "found", "lower": {"rate": 2000}, "upper": {"rate": 3000}}
    trials = OPEN["searches"][0]["trials"]
    document = {"schema": "lunscope.sweep/1", "curves": [], "open_loop": search(*trials, limits=(limit,))}
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(document))
    shown = Page("\n".join(html_lines(document_of(path, DocumentOptions()))))
    assert "p99<=5ms: 2,000 IOPS keep it, 3,000 exceed it." in shown.text
    assert "Latency against throughput" in shown.text
    assert "Open loop" in "\n".join(markdown_lines(document_of(path, DocumentOptions())))


@pytest.mark.parametrize("odd", [1, [], {"searches": {}}, {"searches": [{"trials": [{"rate": -1}, 3]}]}])
def test_damaged_open_loops_are_left_out(tmp_path: Path, odd: Any) -> None:
    document = {**sweep_document(_result("qd=1,2,4,8"), ()), "open_loop": odd}
    assert "Open loop" not in page(tmp_path, document).text


def test_a_limit_has_its_figure_over_the_rate_and_its_cautions_in_the_headline(tmp_path: Path) -> None:
    limit = {
        "limit": "p99<=5ms",
        "verdict": "found",
        "text": "p99<=5ms: 2,000 IOPS keep it, 3,000 exceed it (9 of 4,000 I/Os over it, 0.23 %)",
        "cautions": ["at 2,000 IOPS 2 of 5 trials exceed it"],
        "lower": {"rate": 2000},
        "upper": {"rate": 3000},
    }
    trials = OPEN["searches"][0]["trials"]
    document = {
        "schema": "lunscope.sweep/1",
        "curves": [],
        "open_loop": search(*trials, limits=(limit, {"limit": "?"})),
    }
    path = tmp_path / "sweep.json"
    path.write_text(json.dumps(document))
    lines = "\n".join(html_lines(document_of(path, DocumentOptions())))
    shown = Page(lines)
    assert f"{limit['text']}. Caution: at 2,000 IOPS 2 of 5 trials exceed it." in shown.text
    assert "p99 over the rate, with the limit p99<=5ms" in shown.text
    assert "limit p99<=5ms" in shown.text
    assert "keeps it: 2,000 IOPS" in lines
    assert "exceeds it: 3,000 IOPS" in lines
