"""The document of a run, from what `run --json` printed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from collectors.reports.documents.content import (
    MOST_ROWS,
    NONE,
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Facts,
    Form,
    Paragraph,
    Section,
)
from collectors.reports.documents.findings import finding_section
from collectors.reports.documents.host import host_section_of
from collectors.reports.documents.json_values import (
    Values,
    figure,
    knob_key,
    knob_text,
    number,
    part,
    parts,
    text_of,
    texts,
)
from collectors.reports.documents.response import response_blocks
from collectors.reports.documents.run_caveats import caveats_of
from collectors.reports.documents.run_devices import device_blocks
from collectors.session.time_format import clock_text
from engine.text import short_text, three_digits

_ENDINGS = {
    "runtime": "runtime over",
    "size": "all bytes transferred",
    "steady": "steady state reached",
    "stopped": "stopped",
    "failed": "failed",
    "": "still running",
}
_PERCENTILES = (("p50", "p50", 2.0), ("p90", "p90", 10.0), ("p99", "p99", 100.0), ("p99.9", "p99_9", 1000.0))
"""Name, key, and of how many I/Os one is slower."""
_HEAD = (
    ("I/Os", ""),
    ("IOPS", "1/s"),
    ("throughput", "MB/s"),
    ("mean", "ms"),
    ("p50", "ms"),
    ("p90", "ms"),
    ("p99", "ms"),
    ("p99.9", "ms"),
    ("max", "ms"),
    ("avg peak", "ms"),
)
_QUICK_MS = 0.1
"""Latency below which a microsecond is too coarse."""
_MOST_NS = 1 << 63
_SETTINGS = ("access", "arrival", "streams", "copies", "size_bytes", "runtime_s", "seed", "verify", "poll")
"""Settings of the job, beside its knobs."""


def run_report(path: Path, run: Values) -> Document:
    """Describe the document of a run."""
    return Document(
        "Load report",
        f"{path.name}: ran {ran_words(run)}",
        (
            result_section(run),
            loads_section(run),
            Section("Targets", tuple(_targets(run))),
            Section("Devices under the targets", tuple(device_blocks(run))),
            _events(run),
            _epochs(run),
            Section("Job", tuple(_job(run))),
            finding_section(run),
            host_section_of(part(run, "host")),
            _caveats(run),
        ),
    )


def ran_words(run: Values) -> str:
    """Say how long it ran, why it ended, and how much of that was measured."""
    ended = text_of(run.get("ended"))
    ran, measured = (figure(number(run, key), 1) for key in ("elapsed_s", "duration_s"))
    return f"{ran} s ({_ENDINGS.get(ended, ended)}), measured {measured} s"


def shown_sections(
    run: Values, title: str, words: tuple[tuple[str, str], ...], targets: Sequence[Values]
) -> list[Section]:
    """Describe a run as verbs print it: what it was in a few words, and its targets and paths over all epochs."""
    return [
        Section(title, (Facts(words),)),
        result_section(run),
        loads_section(run),
        _epochs(run),
        Section("Targets", tuple(rows_of("target", targets))),
        *below_sections(run),
        _caveats(run),
        finding_section(run),
    ]


def rows_of(title: str, measured: Sequence[Values]) -> Iterator[Block]:
    """Yield a table with the figures of each of these, by their names; nothing without any."""
    rows = tuple((text_of(each.get("name")), *_figures(part(each, "total"))) for each in measured)
    if rows:
        yield DocumentTable("", ((title, ""), *_HEAD), rows)


def below_sections(run: Values) -> list[Section]:
    """Describe what happened below a run meanwhile, as far as its document has it."""
    return [Section("Devices under the targets", tuple(device_blocks(run))), _events(run)]


def _caveats(run: Values) -> Section:
    lines = tuple(caveats_of(run))
    return Section("Badges and caveats", (Bullets(lines) if lines else NONE,))


def result_section(run: Values) -> Section:
    """Make the figures of all I/Os together, with what they cost."""
    return Section("Result", tuple(_result_blocks(run)))


def _result_blocks(run: Values) -> Iterator[Block]:
    total = part(run, "total")
    latency = part(total, "latency_us")
    yield Paragraph(
        f"{figure(number(total, 'iops'), 1)} IOPS and {figure(number(total, 'bytes_per_s') / 1e6, 1)} MB/s "
        f"at {_ms(latency, 'mean')} ms mean latency, p99 {_ms(latency, 'p99')} ms.",
        important=True,
    )
    yield DocumentTable("", (("", ""), *_HEAD), _directions(run))
    if costs := tuple(_costs(run, [part(epoch, "fsync") for epoch in parts(run, "epochs")])):
        yield Facts(costs)
    yield Charts((_percentile_chart(run),))
    yield from _services(run)
    logical = part(run, "logical")
    if logical:
        yield DocumentTable("Logical I/Os, each of several parts or copies", (("", ""), *_HEAD), _directions(logical))
    yield from response_blocks(run)


def _directions(split: Values) -> tuple[tuple[str, ...], ...]:
    """Make a row of reads and writes that there were, and of the sum of both."""
    used = [pair for pair in _DIRECTIONS[:2] if number(part(split, pair[1]), "ios") > 0]
    shown = used if len(used) == 1 else (*used, _DIRECTIONS[2])
    return tuple((name, *_figures(part(split, key))) for name, key in shown)


def _costs(measured: Values, fsyncs: Sequence[Values]) -> Iterator[tuple[str, str]]:
    """Say what the CPU time bought, and how long flushes took."""
    cpu = part(measured, "cpu")
    if cpu and number(part(measured, "total"), "ios") > 0:
        engine, host = (
            f"{figure(number(cpu, f'{who}_us_per_io'), 2)} us/IO, {_three_digits(number(cpu, f'{who}_s_per_gb'))} s/GB"
            for who in ("engine", "host")
        )
        yield "CPU of the engine", engine
        least = "at least " if cpu.get("host_is_least") is True else ""
        yield "CPU of the host", f"{least}{host}, {figure(number(cpu, 'host_busy_pct'))} % busy"
    ios = sum(count for each in fsyncs if (count := number(each, "ios")) > 0)
    if ios:
        sums = [number(each, "ios") * number(part(each, "latency_us"), "mean") for each in fsyncs if each]
        largest = max(number(part(each, "latency_us"), "max") for each in fsyncs if each)
        mean = math.fsum(value for value in sums if value >= 0) / ios
        yield "flushes", f"{figure(ios)} fsyncs, mean {figure(mean)} us, max {figure(largest)} us"


def _three_digits(value: float) -> str:
    return figure(value) if value >= 100 else three_digits(value) if math.isfinite(value) else "-"


_DIRECTIONS = (("reads", "read"), ("writes", "write"), ("total", "total"))


def _events(run: Values) -> Section:
    return Section("Events on the host", tuple(_event_blocks(run)))


def _event_blocks(run: Values) -> Iterator[Block]:
    """List what happened while it ran; those with one cause are one line."""
    groups = parts(run, "events")
    rows = []
    for group in groups[:MOST_ROWS]:
        time_ns, count = number(group, "time_ns"), len(parts(group, "events"))
        time = clock_text(int(time_ns)) if 0 <= time_ns < _MOST_NS else "-"
        rows.append((time, text_of(group.get("kind")), text_of(group.get("text")), str(max(count, 1))))
    if rows:
        more = len(groups) - len(rows)
        note = f"{more:,} more are not listed." if more else ""
        yield DocumentTable("", (("time", ""), ("kind", ""), ("event", ""), ("events", "")), tuple(rows), 3, note)


def loads_section(run: Values) -> Section:
    """Make a row for each of several loads."""
    return Section("Loads at the same time", tuple(_load_blocks(run)))


def _load_blocks(run: Values) -> Iterator[Block]:
    """Show what each of several loads did, with the settings that are not the same in all."""
    common, rows = part(run, "job"), []
    for load in parts(run, "loads")[:MOST_ROWS]:
        job = part(load, "job")
        knobs = _own(part(job, "knobs"), part(common, "knobs"))
        own = [f"{knob_key(name)}={knob_text(value)}" for name, value in knobs.items()]
        own += [f"{name}={text_of(value)}" for name, value in _own(job, common).items() if name in _SETTINGS]
        row = (text_of(load.get("name")), ", ".join(texts(load, "targets")), short_text(", ".join(own) or "-"))
        rows.append((*row, *_figures(part(load, "total"))))
    if rows:
        yield DocumentTable("", (("load", ""), ("targets", ""), ("settings", ""), *_HEAD), tuple(rows), texts=3)


def _own(values: Values, common: Values) -> Values:
    return {name: value for name, value in values.items() if value not in (None, common.get(name))}


def _services(run: Values) -> Iterator[Block]:
    """Show times from submit on, which in an open loop are not the latencies."""
    found = [(name, part(run, key, "service_us")) for name, key in _DIRECTIONS]
    rows = [
        (name, *(_ms(each, key) for key in ("mean", "p50", "p90", "p99", "p99_9", "max")))
        for name, each in found
        if each
    ]
    if rows:
        head = (("", ""), *((name, "ms") for name in ("mean", "p50", "p90", "p99", "p99.9", "max")))
        yield DocumentTable("From submit to completion, without the wait for a free slot", head, tuple(rows))


def _figures(block: Values) -> tuple[str, ...]:
    latency = part(block, "latency_us")
    return (
        figure(number(block, "ios")),
        figure(number(block, "iops"), 1),
        figure(number(block, "bytes_per_s") / 1e6, 1),
        *(_ms(latency, key) for key in ("mean", "p50", "p90", "p99", "p99_9", "max", "avg_peak")),
    )


def _ms(latency: Values, key: str) -> str:
    value = number(latency, key) / 1000
    return figure(value, 4 if value < _QUICK_MS else 3)


def _percentile_chart(run: Values) -> DrawnChart:
    curves = []
    for name, key in _DIRECTIONS[:2]:
        latency = part(run, key, "latency_us")
        known = [(label, x, number(latency, at) / 1000) for label, at, x in _PERCENTILES]
        if any(math.isfinite(value) for _, _, value in known):
            labels, x, y = zip(*known, strict=True)
            curves.append(DrawnCurve(name, x, y, Form.POINTS, labels=labels))
    return DrawnChart(
        "Latency percentiles", "ms", tuple(curves), DrawnAxis.LOG, "one of so many I/Os takes longer", log_y=True
    )


def _targets(run: Values) -> Iterator[Block]:
    """Figures of targets by epoch, since only these are in the document."""
    rows = []
    for epoch in parts(run, "epochs"):
        for target in parts(epoch, "targets"):
            rows.append((text_of(target.get("name")), text_of(epoch.get("index")), *_figures(part(target, "total"))))
            for path in parts(target, "paths"):
                name = f"- {text_of(path.get('name'))}"
                rows.append((name, text_of(epoch.get("index")), *_figures(part(path, "total"))))
    if rows:
        yield DocumentTable.of_first("", (("target", ""), ("epoch", ""), *_HEAD), rows)
    elif names := texts(run, "targets"):
        yield Bullets(names)


def _epochs(run: Values) -> Section:
    return Section("Epochs", tuple(_epoch_blocks(run)))


def _epoch_blocks(run: Values) -> Iterator[Block]:
    epochs = parts(run, "epochs")
    if len(epochs) < 2:
        return
    rows, costs, before = [], list[str](), part(run, "job", "knobs")
    for epoch in epochs[:MOST_ROWS]:
        knobs = part(epoch, "knobs")
        turned = [f"{knob_key(name)}={knob_text(value)}" for name, value in knobs.items() if before.get(name) != value]
        start = f"{figure(number(epoch, 'start_s'), 1)} s"
        rows.append((text_of(epoch.get("index")), ", ".join(turned) or "-", start, *_figures(part(epoch, "total"))))
        cost = "; ".join(f"{name}: {value}" for name, value in _costs(epoch, [part(epoch, "fsync")]))
        costs += [f"epoch {text_of(epoch.get('index'))}: {cost}"] if cost else []
        before = knobs
    yield DocumentTable("", (("epoch", ""), ("turned", ""), ("from", ""), *_HEAD), tuple(rows), texts=2)
    if costs:
        yield Bullets(tuple(costs))


def _job(run: Values) -> Iterator[Block]:
    job, engine = part(run, "job"), part(run, "engine")
    rows = [("targets", ", ".join(texts(run, "targets")))]
    rows += [(knob_key(name), knob_text(value)) for name, value in part(job, "knobs").items() if value is not None]
    rows += [(name, text_of(job[name])) for name in _SETTINGS if job.get(name) not in (None, False)]
    why = text_of(engine.get("why"))
    rows.append(("engine", f"{text_of(engine.get('backend'))} ({why}), lunscope {text_of(engine.get('version'))}"))
    yield Facts(tuple((name, short_text(value)) for name, value in rows))
