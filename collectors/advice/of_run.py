"""Findings of a run: its result and what the devices under its targets did, as figures for the rules."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.advice.device_figures import figures_below
from collectors.advice.device_rules import device_findings
from collectors.advice.figures import NAN, LoadFigures, TargetFigures
from collectors.advice.finding import Finding, in_order
from collectors.advice.load_rules import load_findings
from collectors.advice.of_state import findings_below
from collectors.advice.run_rules import run_findings
from collectors.reports.run_devices import RunDevices
from engine.job.spec import Arrival, Backend, JobSpec
from engine.replacing import replace
from engine.results.result import EpochResult, RunResult
from engine.results.waiting import waiting_share


def findings_of_run(result: RunResult, devices: RunDevices | None) -> tuple[Finding, ...]:
    """Find what limited a run, from its own figures and those of the devices while it ran; no findings without I/Os.

    With several epochs, the load's own figures are judged for each, and devices over the whole run without comparing
    the two: their times differ.
    """
    measured = [epoch for epoch in result.epochs if epoch.duration_s > 0]
    if not measured:
        return ()
    users = () if devices is None else devices.cpu_users
    loads = [replace(_load(result, epoch), cpu_users=users) for epoch in measured]
    last = figures_below(devices).under(loads[-1])
    states = tuple(findings_below(devices, loads[-1], [disk.key for disk in last.top_disks]))
    if len(loads) == 1:
        return in_order((*run_findings(last), *states))
    found: dict[object, Finding] = {}
    for epoch, load in zip(measured, loads, strict=True):
        for finding in load_findings(load):
            known = found.get((finding.kind, finding.about))
            if known is None or known.confidence < finding.confidence:
                found[finding.kind, finding.about] = replace(finding, where=f"epoch {epoch.index}")
    return in_order((*found.values(), *device_findings(last), *states))


def findings_of_load(result: RunResult) -> tuple[Finding, ...]:
    """Find what limited a run by its own figures alone, where other loads use the same devices."""
    found = [load_findings(_load(result, epoch)) for epoch in result.epochs if epoch.duration_s > 0]
    return in_order(tuple(finding for each in found for finding in each))


def _load(result: RunResult, epoch: EpochResult) -> LoadFigures:
    job, knobs, split, seconds = result.about.job, epoch.knobs, epoch.split, epoch.duration_s
    return LoadFigures(
        queue_depth=knobs.queue_depth,
        targets=tuple(_targets(epoch)),
        duration_s=seconds,
        ios=split.total.ios,
        iops=split.total.ios / seconds,
        latency_ns=_known(split.total.mean_ns),
        read_bytes_per_s=split.read.bytes / seconds,
        write_bytes_per_s=split.write.bytes / seconds,
        given_targets=len(result.about.targets),
        one_queue=job.total_queue_depth,
        closed=job.arrival is Arrival.CLOSED,
        pauses=job.think_s > 0,
        rate_iops=_known(knobs.rate_iops),
        direct=knobs.mode.is_direct,
        mode=knobs.mode.value,
        threads=knobs.threads,
        engine_share=_engine_share(result, job, epoch),
        waiting_share=_known(waiting_share(epoch, result.about.engine.backend, one_queue=job.total_queue_depth)),
        host_busy_pct=NAN if epoch.cpu is None else _known(epoch.cpu.host_busy_pct),
    )


def _known(value: float | None) -> float:
    return NAN if value is None else float(value)


def _engine_share(result: RunResult, job: JobSpec, epoch: EpochResult) -> float:
    """Share of their time that the threads of io_uring used; other engines have a thread for each I/O."""
    if result.about.engine.backend != Backend.URING or job.stays_awake or epoch.cpu is None:
        return NAN
    return epoch.cpu.engine_ns / 1e9 / epoch.duration_s / epoch.knobs.threads


def _targets(epoch: EpochResult) -> Iterator[TargetFigures]:
    logical = epoch.logical
    hold_ups = {} if logical is None else {each.target: logical.cost_pct(each) for each in logical.hold_ups}
    for target in epoch.targets:
        total = target.split.total
        yield TargetFigures(
            target.name, total.ios, total.ios / epoch.duration_s, total.mean_ns or 0.0, hold_ups.get(target.name)
        )
