"""Verdicts over recordings of a known load, and the verb as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collectors.all_subjects import SUBJECTS
from collectors.compare.comparison import CompareOptions, Comparison, compare
from collectors.compare.measures import compared_fields
from collectors.compare.open_side import open_side
from collectors.compare.side import Figure, Side, SideRow
from collectors.field import Unit
from collectors.model import Tier
from engine.replacing import replace
from engine.statistics.verdict import Better, Verdict
from engine.study.decoded import encoded
from engine.sweep.trial import TRIALS, Trial
from tests.unit.compare.recordings import Epoch, record
from tui.cli import run_cli

GOLDEN = Path(__file__).parents[1] / "golden" / "run.json"
RECORDINGS = Path(__file__).parents[2] / "recordings"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twice the same, then 30 % faster at 20 % more latency."""
    epochs = Epoch(60), Epoch(60), Epoch(60, 2600, 1_200_000)
    return record(tmp_path_factory.mktemp("compare") / "x.luns", *epochs)


def _compared(a: str, b: str, **options: Any) -> Comparison:
    chosen = CompareOptions(**options)
    return compare(open_side(a, chosen), open_side(b, chosen), chosen)


def _verdicts(comparison: Comparison) -> dict[str, Verdict]:
    (row,) = comparison.rows
    return {field.field.id: field.verdict for field in row.fields}


def test_same_load_is_equivalent(recording: Path) -> None:
    verdicts = _verdicts(_compared(f"{recording}@epoch0", f"{recording}@epoch1"))
    for name in ("iops", "await_ms", "p50_ms", "p99_ms", "in_flight", "max_ms"):
        assert verdicts[name] is Verdict.EQUIVALENT, name


@pytest.mark.slow
def test_another_load_is_better_worse_or_differs_as_the_field_declares(recording: Path) -> None:
    comparison = _compared(f"{recording}@epoch0", f"{recording}@epoch2")
    verdicts = _verdicts(comparison)
    assert verdicts["iops"] is Verdict.BETTER
    assert verdicts["await_ms"] is verdicts["p99_ms"] is verdicts["max_ms"] is Verdict.WORSE
    assert verdicts["in_flight"] is Verdict.DIFFERS
    iops = next(field for field in comparison.rows[0].fields if field.field.id == "iops")
    assert iops.interval is not None
    assert iops.interval.low < 600 < iops.interval.high
    back = _verdicts(_compared(f"{recording}@epoch2", f"{recording}@epoch0"))
    assert (back["iops"], back["await_ms"]) == (Verdict.WORSE, Verdict.BETTER)


def test_too_little_data_is_undecided_with_what_is_missing(recording: Path) -> None:
    comparison = _compared(f"{recording}@0..10", f"{recording}@20..40")
    fields = {field.field.id: field for field in comparison.rows[0].fields}
    assert set(_verdicts(comparison).values()) == {Verdict.UNDECIDED}
    assert fields["iops"].reason == "A needs 10 more intervals"
    assert fields["iops"].interval is None


def test_noise_beyond_delta_is_undecided_with_how_much_longer_it_takes(tmp_path: Path) -> None:
    file = record(tmp_path / "noisy.luns", Epoch(30, noise=0.2), Epoch(30, noise=0.2), seed=3)
    comparison = _compared(f"{file}@epoch0", f"{file}@epoch1", delta=0.05)
    iops = next(field for field in comparison.rows[0].fields if field.field.id == "iops")
    assert iops.verdict is Verdict.UNDECIDED
    assert "more intervals" in iops.reason


@pytest.mark.slow
def test_recording_that_grows_has_wider_intervals(tmp_path: Path, recording: Path) -> None:
    side = open_side(f"{recording}@epoch0", CompareOptions()), open_side(f"{recording}@epoch1", CompareOptions())
    closed = compare(*side, CompareOptions())
    growing = compare(side[0], replace(side[1], growing=True), CompareOptions())
    both = [{field.field.id: field for field in each.rows[0].fields} for each in (closed, growing)]
    assert both[1]["iops"].verdict is Verdict.UNDECIDED
    assert both[1]["iops"].reason == "A needs 41 more intervals"
    p99 = [each["p99_ms"].interval for each in both]
    assert p99[0] is not None
    assert p99[1] is not None
    assert p99[1].half_width > p99[0].half_width
    longer = record(tmp_path / "long.luns", Epoch(120), Epoch(120))
    side = open_side(f"{longer}@epoch0", CompareOptions()), open_side(f"{longer}@epoch1", CompareOptions())
    growing = compare(side[0], replace(side[1], growing=True), CompareOptions())
    closed = compare(*side, CompareOptions())
    iops = [next(f for f in each.rows[0].fields if f.field.id == "iops").interval for each in (closed, growing)]
    assert iops[0] is not None
    assert iops[1] is not None
    assert iops[1].half_width > iops[0].half_width


@pytest.mark.slow
def test_warm_up_is_left_out_and_said(tmp_path: Path) -> None:
    slow = [Epoch(1, iops) for iops in range(200, 2000, 180)]
    file = record(tmp_path / "warm.luns", *slow, Epoch(80), Epoch(100))
    comparison = _compared(f"{file}@0..90", f"{file}@90..190")
    row = comparison.rows[0]
    assert 5 <= row.a.cut_s <= 25
    assert row.b.cut_s == 0
    assert _verdicts(comparison)["iops"] is Verdict.EQUIVALENT


def test_direction_of_a_field_is_declared_or_that_of_its_unit() -> None:
    directions = {(field.table, field.id): field.improves for subject in SUBJECTS for field in compared_fields(subject)}
    assert directions["disks", "iops"] is directions["load", "bytes_per_s"] is Better.HIGHER
    assert directions["disks", "await_ms"] is directions["load_total", "errors_per_s"] is Better.LOWER
    assert directions["hbas", "new_timeouts"] is directions["cgroups", "psi_full_pct"] is Better.LOWER
    assert directions["disks", "busy_pct"] is directions["cgroups", "read_limit_per_s"] is Better.NEITHER
    assert not {("load", "errors"), ("paths", "timeouts"), ("processes", "pid")} & directions.keys()


def test_percentiles_come_from_histograms_and_each_largest_value_is_a_peak() -> None:
    fields = [field for subject in SUBJECTS for field in compared_fields(subject)]
    percentiles = {field.table for field in fields if re.search(r"p\d+_ms$", field.id)}
    assert percentiles == {"disks", "paths", "hbas", "target_ports", "whole_host", "load", "load_total"}
    largest = {(field.table, field.id) for field in fields if field.peak}
    assert {("disks", "queue_max_ms"), ("load", "max_ms"), ("nfs", "rtt_max_ms")} <= largest
    assert {field_id for _, field_id in largest} == {
        *("max_ms", "service_max_ms", "queue_max_ms", "in_flight_peak"),
        *("rtt_max_ms", "execute_max_ms"),
    }


def _side(tier: Tier, interval_s: float, seed: int) -> Side:
    random = np.random.default_rng(seed)
    values = 10 + 0.1 * random.standard_normal(60)
    figures = {
        name: Figure(10.0, values, np.ones(60), tier=tier, varies=True) for name in ("service_ms", "max_ms", "busy_pct")
    }
    return Side("x", "recording", (SideRow("disks", "k", "sda", "wwid", figures),), 60, interval_s, tier=tier)


def test_figures_of_different_tiers_are_named_and_not_judged() -> None:
    comparison = compare(_side(Tier.EXACT, 1.0, 1), _side(Tier.SAMPLED, 1.0, 2), CompareOptions())
    assert {field.reason for field in comparison.rows[0].fields} == {"exact in A, sampled in B"}
    same = compare(_side(Tier.EXACT, 1.0, 1), _side(Tier.EXACT, 1.0, 2), CompareOptions())
    assert set(_verdicts(same).values()) == {Verdict.EQUIVALENT}


def _disk(**means_and_spreads: tuple[float, float]) -> Side:
    """A minute of a disk whose figures vary about their means."""
    random = np.random.default_rng(round(1e6 * sum(mean for mean, _ in means_and_spreads.values())))
    figures = {}
    for name, (mean, spread) in means_and_spreads.items():
        noise = random.standard_normal(60)
        values = mean + spread * (noise - noise.mean())
        figures[name] = Figure(mean, values, np.ones(60), tier=Tier.EXACT)
    return Side("x", "recording", (SideRow("disks", "k", "sda", "wwid", figures),), 60, 1.0, tier=Tier.EXACT)


A_LITTLE = {
    "queue_ms": (0.008, 0.010),
    "service_ms": (0.020, 0.024),
    "busy_pct": (1.0, 1.8),
    "in_flight": (0.02, 0.09),
    "discards_per_s": (0.5, 1.3),
    "read_bytes_per_s": (20e3, 80e3),
    "read_bytes_per_io": (4096.0, 4500.0),
}
"""Figures in A and B that differ by a share far above delta, and by nothing that matters: a case for each unit."""


@pytest.mark.parametrize("name", A_LITTLE)
def test_a_change_below_the_floor_of_its_unit_is_none(name: str) -> None:
    one, other = A_LITTLE[name]
    sides = _disk(**{name: (one, one / 100)}), _disk(**{name: (other, other / 100)})
    options = CompareOptions(every=True)
    assert _verdicts(compare(*sides, options)) == {name: Verdict.EQUIVALENT}
    assert _verdicts(compare(sides[1], sides[0], options)) == {name: Verdict.EQUIVALENT}
    without = CompareOptions(every=True, floors=dict.fromkeys(Unit, 0.0))
    assert _verdicts(compare(*sides, without))[name] in {Verdict.WORSE, Verdict.BETTER, Verdict.DIFFERS}


def test_a_change_beyond_floor_and_delta_is_one() -> None:
    sides = _disk(queue_ms=(0.008, 0.0001)), _disk(queue_ms=(0.040, 0.0001))
    assert _verdicts(compare(*sides, CompareOptions())) == {"queue_ms": Verdict.WORSE}
    slow = _disk(service_ms=(1.0, 0.001)), _disk(service_ms=(1.04, 0.001))
    assert _verdicts(compare(*slow, CompareOptions())) == {"service_ms": Verdict.EQUIVALENT}
    assert _verdicts(compare(*slow, CompareOptions(delta=0.02))) == {"service_ms": Verdict.WORSE}
    assert _verdicts(compare(*slow, CompareOptions(delta=0.02, floors={Unit.MILLISECONDS: 0.05}))) == {
        "service_ms": Verdict.EQUIVALENT
    }


def test_steady_pairs_are_never_worse() -> None:
    """Seven pairs of a steady disk whose queue is that of dispatching, 8 us in one recording and 10 in another."""
    for pair in range(7):
        one, other = (
            _disk(iops=(2000 + pair, 60), await_ms=(1.0, 0.04), queue_ms=(queue_ms, 0.001), service_ms=(0.99, 0.04))
            for queue_ms in (0.008, 0.010)
        )
        assert Verdict.WORSE not in _verdicts(compare(one, other, CompareOptions())).values()


def test_no_interval_is_below_the_loss_of_all() -> None:
    """Bursts of I/O between idle minutes: the mean is hardly known, but no rate is negative."""
    sides = _disk(iops=(100.0, 3000.0)), _disk(iops=(100.5, 3000.0))
    (field,) = compare(*sides, CompareOptions()).rows[0].fields
    assert field.interval is not None
    assert field.relative(field.interval.low) == -1.0


def test_peaks_of_intervals_of_different_length_are_not_judged() -> None:
    comparison = compare(_side(Tier.EXACT, 1.0, 1), _side(Tier.EXACT, 5.0, 2), CompareOptions())
    verdicts = _verdicts(comparison)
    assert (verdicts["max_ms"], verdicts["service_ms"]) == (Verdict.UNDECIDED, Verdict.EQUIVALENT)


def _run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = run_cli(["compare", *map(str, words)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_text_fits_80_columns_and_says_all(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, f"{recording}@epoch0", f"{recording}@epoch2")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert [line for line in out.splitlines() if line.startswith("IOPS") and line.endswith("better")]
    assert [line for line in out.splitlines() if line.startswith("lat ") and line.endswith("worse")]
    assert "latency:" in out
    assert "delta 5 % of A" in out


@pytest.mark.parametrize(
    ("b", "fail_on", "code"), [("epoch2", "worse", 1), ("epoch1", "worse", 0), ("epoch2", "differs", 1)]
)
def test_fail_on_is_for_scripts(
    recording: Path, capsys: pytest.CaptureFixture[str], b: str, fail_on: str, code: int
) -> None:
    fields = "iops,await_ms,in_flight"
    words = (f"{recording}@epoch0", f"{recording}@{b}", "--fields", fields, "--fail-on", fail_on)
    assert _run(capsys, *words)[0] == code


def test_json_is_strict_and_keeps_its_keys(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, f"{recording}@epoch0", f"{recording}@epoch2", "--json", "--delta", "2", "--all")
    document = json.loads(out, parse_constant=pytest.fail)
    assert code == 0
    assert list(document) == [
        *("schema", "version", "delta", "floors", "confidence", "a", "b", "verdicts", "idle_rows", "rows"),
    ]
    assert (document["schema"], document["delta"]) == ("lunscope.compare/1", 0.02)
    assert list(document["a"]) == [
        *("part", "kind", "start", "end", "chosen", "intervals", "interval_s", "tier", "growing", "notice"),
    ]
    (row,) = document["rows"]
    assert list(row) == ["table", "name", "name_b", "id", "id_b", "a", "b", "fields", "distributions"]
    assert list(row["fields"][0]) == [
        *("id", "better", "a", "b", "tier_a", "tier_b", "difference", "low", "high", "relative", "margin"),
        *("verdict", "reason"),
    ]
    assert sum(document["verdicts"].values()) == len(row["fields"])
    assert row["distributions"][0]["a"]["latency_ms"]["p50"] == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("{file}", "{other}"), "nothing in common: A holds 1 load"),
        (("{file}@0..50", "{file}@40..90"), "overlap in time"),
        (("{file}@epoch0", "{file}@epoch1", "--delta", "lots"), "--delta lots: write 0% to 1000%"),
        (("{file}@epoch0", "{file}@epoch1", "--floor", "us=3"), "--floor us=3: write UNIT=VALUE of 1/s, B/s, ms"),
        (("{file}@epoch0", "{file}@epoch1", "--floor", "3"), "--floor 3: write UNIT=VALUE"),
        (("{file}@epoch0", "{file}@epoch1", "--floor", "ms=-1"), "--floor ms=-1: write UNIT=VALUE"),
        (("{file}@epoch0", "{file}@epoch1", "--confidence", "100%"), "--confidence 100%: write 50% to 99.99%"),
        (("{file}@epoch0", "{file}@epoch1", "--table", "discs"), "table 'discs': unknown"),
        (("{file}@epoch0", "{file}@epoch1", "--fields", "errors"), "field 'errors': not in"),
        (("{file}@0..0.5", "{file}@epoch1"), "holds no whole interval"),
        (("{run}@1..2", "{file}"), "the result of a run has no such part"),
        (("{run}@epoch9", "{file}"), "no epoch 9"),
        (("{broken}", "{file}"), "a damaged document of run --json"),
        (("{huge}", "{file}"), "the document of run --json (a number beyond every float)"),
        (("{strange}", "{file}"), "neither a recording nor the document of run --json"),
    ],
)
def test_what_cannot_be_compared_is_one_line_and_exit_2(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str
) -> None:
    files = {"file": recording, "other": RECORDINGS / "tape.luns", "run": GOLDEN}
    files |= {"broken": tmp_path / "broken.json", "strange": tmp_path / "strange.json"}
    files["huge"] = tmp_path / "huge.json"
    files["broken"].write_text('{"schema": "lunscope.run/1", "total": 3}')
    files["huge"].write_text(GOLDEN.read_text().replace('"ios": ', '"ios": 1e999, "ios_": '))
    files["strange"].write_text('{"schema": [[')
    code, out, err = _run(capsys, *(word.format(**files) for word in words))
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_results_of_runs_are_shown_without_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, GOLDEN, f"{GOLDEN}@epoch0", "--json")
    document = json.loads(out)
    golden = json.loads(GOLDEN.read_text())
    (row,) = document["rows"]
    figures = {field["id"]: field for field in row["fields"]}
    assert (code, err) == (0, "")
    assert figures["iops"]["a"] == pytest.approx(golden["total"]["iops"])
    assert figures["iops"]["b"] == pytest.approx(golden["epochs"][0]["total"]["iops"])
    assert figures["p99_ms"]["b"] == pytest.approx(golden["epochs"][0]["total"]["latency_us"]["p99"] / 1000)
    assert {field["verdict"] for field in row["fields"]} == {"undecided"}
    assert {field["reason"] for field in row["fields"]} == {
        "the result of a run holds no intervals of it: compare recordings"
    }


def _trials(path: Path, *figures: tuple[int, float, float]) -> Path:
    """Write a trial file from curves, loads and IOPS."""
    lines: list[dict[str, Any]] = [{"schema": TRIALS.schema, "sweep": "any"}]
    for curve, load, iops in figures:
        trial = Trial(load, load, iops, 1e9 * load / iops, 0.01, {"p50": 5e5, "p99": 2e6}, ios=5000, stage="repeat")
        lines.append({"curve": curve, **encoded(trial)})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut off')
    return path


def test_loads_of_a_sweep_are_judged_by_their_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = _trials(tmp_path / "trials", (0, 4, 1000), (0, 8, 1990), (0, 8, 2000), (0, 8, 2010), (0, 16, 2005))
    figures = {}
    for name, load in (("knee", 4), ("beyond", 16)):
        code, out, err = _run(capsys, f"{file}@8", f"{file}@{load}", "--json")
        assert (code, err) == (0, "")
        figures[name] = {field["id"]: field for field in json.loads(out)["rows"][0]["fields"]}
    assert figures["knee"]["iops"]["verdict"] == "worse"
    assert figures["beyond"]["iops"]["verdict"] == "equivalent"
    assert figures["beyond"]["await_ms"]["verdict"] == "undecided"
    assert figures["beyond"]["await_ms"]["a"] == pytest.approx(4, rel=0.01)


def test_load_of_a_sweep_with_several_curves_needs_the_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _trials(tmp_path / "trials", (0, 8, 2000), (1, 8, 1000))
    for part, says in (("", "give a load, as @0:8"), ("@8", "give a load, as @0:8"), ("@1:9", "no load 1:9")):
        code, out, err = _run(capsys, f"{file}{part}", f"{file}@0:8")
        assert (code, out) == (2, "")
        assert says in err
    code, out, _ = _run(capsys, f"{file}@0:8", f"{file}@1:8", "--fail-on", "worse")
    assert code == 1
    assert "result of a sweep, 1 measurement" in out


@pytest.mark.parametrize("name", ["load", "multipath", "sampled", "tape"])
def test_old_recordings_compare_with_themselves(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = RECORDINGS / f"{name}.luns"
    code, out, err = _run(capsys, f"{file}@0..3.5", f"{file}@3.6..", "--all", "--table", "disks", "--table", "host")
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--screen", "--json"), "leave out --json and --fail-on"),
        (("--screen", "--fail-on", "worse"), "leave out --json and --fail-on"),
        (("--screen",), "no terminal here: use lunscope compare A B without --screen"),
    ],
)
def test_screen_is_for_a_terminal(
    words: tuple[str, ...],
    refusal: str,
    recording: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert run_cli(["compare", f"{recording}@epoch0", f"{recording}@epoch1", *words]) == 2
    assert refusal in capsys.readouterr().err
