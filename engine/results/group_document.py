"""The JSON document of several loads at once: schema lunscope.run/1 about all of them, and one of each in `loads`."""

from __future__ import annotations

from collections.abc import Sequence

from engine.backend.outstanding import outstanding_document, stalls_document
from engine.results.group_result import GroupResult
from engine.results.result_document import SCHEMA, Document, run_document, split_document
from engine.version import version


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
