"""What several loads measured that ran at the same time: each by itself, and all I/Os together.

The document has the schema lunscope.run/1 about all of them, and one of each in `loads`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.backend.outstanding import outstanding_document, stalls_document
from engine.replacing import replace
from engine.results.measured import Measured, Split, combine_splits
from engine.results.result import ErrorCount, RunResult
from engine.results.result_document import SCHEMA, Document, run_document, split_document
from engine.version import version

_LAST_ENDINGS = ("stopped", "failed")


class NamedResult(Struct, frozen=True):
    """What one of the loads measured."""

    name: str
    result: RunResult


class GroupResult(Struct, frozen=True, eq=False):
    """All loads of a group, at least one."""

    loads: tuple[NamedResult, ...]

    @property
    def results(self) -> tuple[RunResult, ...]:
        """The results alone."""
        return tuple(load.result for load in self.loads)

    @property
    def total(self) -> Split:
        """All I/Os of all loads: latencies are merged from their histograms.

        The average peak is not known: the largest latencies of a second are those of one load.
        """
        total = combine_splits([result.total for result in self.results])
        return Split(*(_without_peaks(part) for part in (total.read, total.write, total.total)))

    @property
    def measured_ns(self) -> tuple[int, int]:
        """When the first load began to be measured and the last ended, on the monotonic clock; 0, 0 if none was."""
        spans = [span for span in map(_measured_ns, self.results) if span is not None]
        return (min(begin for begin, _ in spans), max(end for _, end in spans)) if spans else (0, 0)

    @property
    def duration_s(self) -> float:
        """Seconds in which any load was measured, which rates of all together are about."""
        begin_ns, end_ns = self.measured_ns
        return (end_ns - begin_ns) / 1e9

    @property
    def started_ns(self) -> int:
        """When the first of them began, on the monotonic clock; 0 if none did."""
        return min((result.about.started_ns for result in self.results if result.about.started_ns), default=0)

    @property
    def ended_ns(self) -> int:
        """When the last of them ended, on the monotonic clock."""
        return max(result.ended_ns for result in self.results)

    @property
    def elapsed_s(self) -> float:
        """From the first start to the last end."""
        return (self.ended_ns - self.started_ns) / 1e9 if self.started_ns else 0.0

    @property
    def ended(self) -> str:
        """Why it is over: failed or stopped if any load was, else as the last load that ended."""
        endings = [result.about.ended for result in self.results]
        bad = [ending for ending in _LAST_ENDINGS if ending in endings]
        return bad[-1] if bad else max(self.results, key=lambda result: result.ended_ns).about.ended

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets of all loads, each once."""
        return tuple(self._targets)

    @property
    def devices(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the devices of each of the targets."""
        return tuple(self._targets.values())

    @property
    def _targets(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for load in self.loads:
            about = load.result.about
            devices = about.devices or ((),) * len(about.targets)
            for spec, name, numbers in zip(about.job.targets, about.targets, devices, strict=False):
                # Every load counts its own scratch files from 1.
                found[name if spec.path is not None else f"[{load.name}] {name}"] = numbers
        return found

    @property
    def errors(self) -> tuple[ErrorCount, ...]:
        """I/Os that failed, the most frequent first; a load each."""
        return tuple(sorted((error for each in self.results for error in each.errors), key=lambda error: -error.ios))


def _measured_ns(result: RunResult) -> tuple[int, int] | None:
    spans = [
        (result.about.started_ns + round(epoch.start_s * 1e9), round(epoch.duration_s * 1e9))
        for epoch in result.epochs
        if epoch.start_s is not None
    ]
    return (spans[0][0], spans[-1][0] + spans[-1][1]) if spans else None


def _without_peaks(measured: Measured) -> Measured:
    return replace(measured, peak_sum_ns=0, peak_seconds=0)


def group_result(loads: Sequence[tuple[str, RunResult]]) -> GroupResult:
    """Put the results of loads together, with their names."""
    return GroupResult(tuple(NamedResult(name, result) for name, result in loads))


def group_document(group: GroupResult) -> Document:
    """Everything the loads measured together, ready for json.dumps; `loads` is a document of each.

    Settings that are not the same in all loads are null, as is what is known of each load only.
    """
    results, documents = group.results, [run_document(result) for result in group.results]
    completed, cpu_ns = (sum(getattr(each, name) for each in results) for name in ("completed_ios", "cpu_ns"))
    return {
        "schema": SCHEMA,
        "engine": {**_engine(documents), "version": version()},
        "job": {**_common([document["job"] for document in documents]), "targets": _targets(documents)},
        "targets": list(group.targets),
        "notices": _named(group, documents, "notices"),
        "badges": _gathered(documents, "badges"),
        "ended": group.ended,
        "elapsed_s": group.elapsed_s,
        "duration_s": group.duration_s,
        "epochs": [],
        **split_document(group.total, group.duration_s),
        "logical": None,
        "cpu": None,
        "cpu_us_per_io": cpu_ns / completed / 1000 if completed else None,
        "skipped": sum(each.skipped for each in results)
        if any(doc["skipped"] is not None for doc in documents)
        else None,
        "steady_state": None,
        "verify": None,
        "failure": "; ".join(f"[{load.name}] {load.result.failure}" for load in group.loads if load.result.failure)
        or None,
        "errors": _gathered(documents, "errors"),
        "paths": _gathered(documents, "paths"),
        "outstanding": outstanding_document(
            [waits for each in results for waits in each.outstanding], group.started_ns, group.ended_ns
        ),
        "stalls": stalls_document([stall for each in results for stall in each.stalls], group.started_ns),
        "loads": [{"name": load.name, **document} for load, document in zip(group.loads, documents, strict=True)],
    }


def _engine(documents: Sequence[Document]) -> Document:
    engines = [document["engine"] for document in documents]
    features: dict[str, None] = {}
    for engine in engines:
        assert isinstance(engine, dict)
        features |= dict.fromkeys(engine["features"])
    return {**_common(engines), "features": list(features)}


def _common(values: Sequence[object]) -> Document:
    """Keep what is the same in all of these objects."""
    first, *others = values
    assert isinstance(first, dict)
    found: Document = {}
    for key, value in first.items():
        each = [value, *(other[key] for other in others if isinstance(other, dict))]
        if isinstance(value, dict) and all(isinstance(one, dict) and one.keys() == value.keys() for one in each):
            found[key] = _common(each)
        else:
            found[key] = value if all(one == value for one in each) else None
    return found


def _targets(documents: Sequence[Document]) -> list[object]:
    found: list[object] = []
    for document in documents:
        job = document["job"]
        assert isinstance(job, dict)
        found += [target for target in job["targets"] if target is None or target not in found]
    return found


def _gathered(documents: Sequence[Document], key: str) -> list[object]:
    found: list[object] = []
    for document in documents:
        values = document[key]
        assert isinstance(values, list)
        found += values
    return found


def _named(group: GroupResult, documents: Sequence[Document], key: str) -> list[object]:
    return [
        f"[{load.name}] {text}"
        for load, document in zip(group.loads, documents, strict=True)
        for text in _gathered([document], key)
    ]
