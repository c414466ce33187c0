"""The job that "load on this disk" sets up."""

from __future__ import annotations

from engine.job.spec import JobSpec, TargetSpec
from engine.replacing import replace


def read_only_job(job: JobSpec, targets: tuple[TargetSpec, ...]) -> JobSpec:
    """Make a job that only reads these targets, all of each, with the order, engine, arrivals and knobs of another one.

    What was meant for the targets of that one is left out: size, offset, mirror, verification, ends by bytes.
    """
    knobs = replace(
        job.knobs,
        read_pct=100.0,
        stripe_width=len(targets),
        write_blocks=None,
        write_distribution=None,
        fsync_every=None,
    )
    return JobSpec(
        targets=targets,
        knobs=knobs,
        access=job.access,
        backend=job.backend,
        streams=job.streams,
        runtime_s=job.runtime_s,
        give_up_s=job.give_up_s,
        seed=job.seed,
        arrival=job.arrival,
        name=job.name,
    )
