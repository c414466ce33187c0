"""Figures of several loads at once: of each, and of all I/Os together."""

from __future__ import annotations

import json
from typing import Any

from collectors.reports.documents.run_result import group_sections
from engine.job.spec import Access, BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.results.group_result import GroupResult, group_document, group_result
from engine.results.result import RunResult, nothing_measured
from engine.results.result_document import run_document
from tests.unit.documents.printed import shown
from tests.unit.synthetic import SECOND_NS, Io, epoch
from tests.unit.test_result import result_of

MS = 1_000_000
START_NS = 1000 * SECOND_NS


def load(latency_ms: int, count: int, path: str, *, late_s: float = 0.0, **job: Any) -> RunResult:
    """A load of so many reads within ten seconds, begun a little later than START_NS."""
    ios = [Io(latency_ns=latency_ms * MS, at_s=10 * number / count) for number in range(count)]
    knobs = Knobs(queue_depth=4, blocks=(BlockShare(4096),))
    spec = JobSpec((TargetSpec(path),), knobs, runtime_s=10.0, **job)
    result = result_of([epoch(ios, knobs=knobs, targets=1)], spec, (path,))
    about = replace(result.about, started_ns=START_NS + round(late_s * SECOND_NS), elapsed_s=10.0, devices=((7,),))
    return replace(result, about=about, errors=())


def two() -> GroupResult:
    return group_result(
        [
            ("quick", load(1, 900, "/dev/x", name="quick")),
            ("slow", load(100, 100, "/dev/y", late_s=2.0, name="slow", access=Access.SEQUENTIAL)),
        ]
    )


def test_percentiles_of_the_sum_are_of_all_ios() -> None:
    total = two().total.total
    assert total.ios == 1000
    medians = [total.percentile_ns(percent) for percent in (50, 89, 91, 99)]
    assert [round(each / MS) for each in medians if each is not None] == [1, 1, 100, 100]
    assert total.largest_ns == 100 * MS
    assert total.average_peak_ns is None


def test_rates_of_the_sum_are_over_the_time_from_the_first_to_the_last() -> None:
    group = two()
    longest_s = max(result.duration_s for result in group.results)
    assert group.duration_s == longest_s + 2.0
    assert group.elapsed_s == 12.0
    document: Any = group_document(group)
    assert document["total"]["iops"] == round(1000 / group.duration_s, 3)


def test_the_document_is_that_of_a_run_with_the_loads_at_its_end() -> None:
    group = two()
    document: Any = json.loads(json.dumps(group_document(group), allow_nan=False))
    alone: Any = run_document(group.results[0])
    assert list(document) == [*alone, "loads"]
    assert list(document["job"]) == list(alone["job"])
    assert list(document["job"]["knobs"]) == list(alone["job"]["knobs"])
    assert (document["job"]["access"], document["job"]["name"], document["job"]["runtime_s"]) == (None, None, 10.0)
    assert document["job"]["targets"] == document["targets"] == ["/dev/x", "/dev/y"]
    assert [each.pop("name") for each in document["loads"]] == ["quick", "slow"]
    assert document["loads"][0] == json.loads(json.dumps(alone))


def test_what_any_of_them_did_is_in_the_document() -> None:
    one, other = two().loads
    failed = replace(other.result, failure="too slow", about=replace(other.result.about, ended="failed"))
    document: Any = group_document(group_result([("quick", one.result), ("slow", failed)]))
    assert (document["ended"], document["failure"]) == ("failed", "[slow] too slow")
    assert document["notices"] == ["[quick] on tmpfs: measures memory", "[slow] on tmpfs: measures memory"]


def test_loads_that_never_began_are_in_it_too() -> None:
    idle = nothing_measured(JobSpec(name="idle"))
    group = group_result([("quick", two().results[0]), ("idle", idle)])
    assert group.targets == ("/dev/x",)
    assert (group.started_ns, group.total.total.ios) == (START_NS, 900)
    nothing = group_result([("idle", idle)])
    assert (nothing.elapsed_s, nothing.duration_s, nothing.ended) == (0.0, 0.0, "stopped")
    json.dumps(group_document(nothing), allow_nan=False)


def test_scratch_files_of_several_loads_are_not_one_target() -> None:
    first = two().results[0]
    own = replace(first, about=replace(first.about, job=replace(first.about.job, targets=(TargetSpec(),))))
    assert group_result([("a", own), ("b", own)]).targets == ("[a] /dev/x", "[b] /dev/x")


def test_the_text_has_a_line_for_each_load_and_the_sum() -> None:
    lines = shown(group_sections(two(), group_document(two()))).splitlines()
    titles = [line for line in lines if line.startswith("[")]
    assert titles[0] == "[quick]"
    assert titles.index("[slow]") < titles.index("[All loads]") < titles.index("[All loads: Result]")
    at = lines.index("[All loads]")
    assert lines[at + 1 : at + 3] == ["loads  2 at the same time", "on     /dev/x, /dev/y"]
    rows = [line.split()[0] for line in lines[at:] if line]
    assert [name for name in rows if name in {"reads", "quick", "slow"}][:3] == ["reads", "quick", "slow"]
