from __future__ import annotations

import math

import pytest

from engine.errors import UsageError
from engine.job.distribution import Permutation, Uniform, Zipf, Zones
from engine.job.io_priority import parse_priorities
from engine.job.rate_floor import RateFloor
from engine.job.spec import Access, Arrival, Backend, BlockShare, JobSpec, Knobs, Mode, TargetSpec
from engine.job.validate import validate
from engine.replacing import replace

TWO = (TargetSpec("/dev/sda"), TargetSpec("/dev/sdb"))


def job(**changes: object) -> JobSpec:
    """A sound job with some changes to its settings and knobs."""
    knobs = {key: changes.pop(key) for key in list(changes) if key in Knobs.__slots__}
    return replace(JobSpec(), knobs=replace(Knobs(), **knobs), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "sound",
    [
        job(),
        job(queue_depth=4096),
        job(targets=TWO, stripe_width=2),
        job(blocks=(BlockShare(512),)),
        job(blocks=(BlockShare(1000),), mode=Mode.BUFFERED),
        job(blocks=(BlockShare(4096, 33.3), BlockShare(8192, 33.3), BlockShare(16384, 33.3))),
        job(read_pct=0),
        job(read_pct=50, write_blocks=(BlockShare(65536),), distribution=Zipf(1.1), write_distribution=Uniform()),
        job(distribution=Permutation(), read_pct=50),
        job(distribution=Permutation(), write_blocks=(BlockShare(8192),)),
        job(access=Access.SEQUENTIAL, streams=1024),
        job(rate_iops=0.5),
        job(threads=1000, seed=0, runtime_s=0.1, size_bytes=1 << 30),
        job(backend=Backend.THREADS, queue_depth=1000),
    ],
)
def test_sound_jobs(sound: JobSpec) -> None:
    validate(sound)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (job(queue_depth=0), "--qd: 0 is out of range: 1 to 4096 per target"),
        (job(queue_depth=4097), "--qd: 4097 is out of range: 1 to 4096 per target"),
        (job(queue_depth=-1), "--qd: -1 is out of range"),
        (job(queue_depth=1001, backend=Backend.THREADS), "--qd: 1001 is out of range: 1 to 1000 with --engine threads"),
        (job(rate_iops=1e30, arrival=Arrival.POISSON), "--rate: 1e+30 is out of range: up to 10000000 with --arrival"),
        (job(stripe_width=0), "--stripe-width: 0 is out of range"),
        (job(stripe_width=2), "--stripe-width: 2 is more than the job has targets: 1 to 1 with 1 target"),
        (job(targets=TWO, stripe_width=3), "--stripe-width: 3 is more than the job has targets: 1 to 2 with 2 targets"),
        (job(blocks=(BlockShare(0),)), "--bs: 0 is out of range: 512 to 64m"),
        (job(blocks=(BlockShare(128 << 20),)), "--bs: 128m is out of range: 512 to 64m"),
        (job(blocks=(BlockShare(1000),)), "--bs: 1000 is not a multiple of 512"),
        (job(blocks=()), "--bs: the shares of the mix add up to 0 %"),
        (job(blocks=(BlockShare(4096, 50), BlockShare(8192, 40))), "--bs: the shares of the mix add up to 90 %"),
        (job(blocks=(BlockShare(4096, math.nan),)), "--bs: a share of nan % is out of range"),
        (job(read_pct=101), "--read-pct: 101 is out of range: 0 to 100"),
        (job(read_pct=-0.5), "--read-pct: -0.5 is out of range"),
        (job(read_pct=math.nan), "--read-pct: nan is out of range"),
        (job(rate_iops=0), "--rate: 0 is out of range: above 0"),
        (job(rate_iops=math.inf), "--rate: inf is out of range"),
        (job(rate_iops=math.nan), "--rate: nan is out of range"),
        (job(write_blocks=(BlockShare(4096, 60),)), "--write-bs: the shares of the mix add up to 60 %"),
        (job(write_blocks=(BlockShare(100),)), "--write-bs: 100 is not a multiple of 512"),
        (job(distribution=Zipf(-1)), "--distribution: zipf: the exponent -1 is out of range"),
        (job(write_distribution=Zones(())), "--write-distribution: zones: 0 zones: give 1 to 256"),
        (job(write_distribution=Permutation()), "--write-distribution: permutation is for reads and writes together"),
        (
            job(distribution=Permutation(), read_pct=50, write_blocks=(BlockShare(8192),)),
            "--distribution: permutation needs one block size for all I/Os, not a mix",
        ),
        (job(fsync_every=0), "--fsync-every: 0 is out of range: after 1 to 1000000000 writes"),
        (job(fsync_every=10**30), "is out of range: after 1 to 1000000000 writes"),
        (job(streams=0), "--streams: 0 is out of range: 1 to 1024"),
        (job(streams=2), "--streams: 2 need sequential order: use --rw read, write or rw"),
        (
            job(access=Access.SEQUENTIAL, distribution=Zipf(1.1)),
            "--distribution: zipf:1.1 needs random order: use --rw randread",
        ),
        (job(targets=()), "--target: 0 targets: give 1 to 1024"),
        (job(targets=TWO * 600), "--target: 1200 targets: give 1 to 1024"),
        (job(threads=0), "--threads: 0 is out of range: 1 to 1000"),
        (job(threads=1001), "--threads: 1001 is out of range: 1 to 1000"),
        (job(stripe_unit_bytes=0), "--stripe-unit: 0 is out of range"),
        (job(stripe_unit_bytes=5000), "--stripe-unit: 5000 is out of range"),
        (job(seed=-1), "--seed: -1 is out of range"),
        (job(seed=1 << 63), "is out of range: 0 to 9223372036854775807"),
        (job(size_bytes=0), "--size: 0 is out of range: at least one block"),
        (job(size_bytes=5000), "--size: 5000 is not a multiple of the block (4k): use 4k"),
        (job(size_bytes=100), "--size: 100 is not a multiple of the block (4k): use 4k"),
        (
            job(size_bytes=16384, blocks=(BlockShare(4096, 50), BlockShare(12288, 50))),
            "--size: 16k is not a multiple of the block (12k): use 12k",
        ),
        (job(offset_bytes=-1), "--offset: -1 is out of range: 0 or more"),
        (job(io_bytes=0), "--io-size: 0 is out of range: at least one block"),
        (job(loops=0), "--loops: 0 is out of range: 1 to 1000000000"),
        (job(loops=1, copies=2, targets=TWO, stripe_width=2), "--io-size: it and --loops count the bytes"),
        (job(jump_bytes=4096), "--jump: needs sequential order"),
        (job(separate=True), "--separate: needs sequential order"),
        (job(stream_step_bytes=0), "--stream-step: needs sequential order"),
        (job(access=Access.SEQUENTIAL, jump_bytes=5000), "--jump: 5000 is not a multiple of the block (4k)"),
        (job(access=Access.SEQUENTIAL, stream_step_bytes=5000), "--stream-step: 5000 is not a multiple"),
        (job(access=Access.SEQUENTIAL, align_bytes=512), "--align: is for random order"),
        (job(align_bytes=0), "--align: 0 is out of range"),
        (job(align_bytes=512, distribution=Permutation()), "--align: blocks of a permutation do not overlap"),
        (job(align_bytes=512, verify=True), "--verify: it checks blocks that do not overlap"),
        (job(ramp_s=-1.0), "--ramp: -1 is out of range"),
        (job(ramp_s=5.0, runtime_s=5.0), "--ramp: nothing of the runtime of 5s is left to measure"),
        (job(think_s=math.inf), "--think: inf is out of range"),
        (job(think_every=0), "--think-every: 0 is out of range"),
        (job(rate_min=RateFloor(0.0, in_bytes=True)), "--rate-min: 0 is out of range"),
        (job(priorities=parse_priorities("realtime/8")), "--io-priority: realtime/8: levels are 0 to 7"),
        (
            job(priorities=parse_priorities("60%:idle,read:60%:idle")),
            "--io-priority: the shares of one size",
        ),
        (
            job(rate_min=RateFloor(9.0, in_bytes=True, cycle_s=0.01)),
            "--rate-min: 0.01s is out of range",
        ),
        (job(rate_min=RateFloor(9.0, in_bytes=False), rate_iops=5.0), "--rate-min: 9 is above the --rate of 5"),
        (job(think_s=0.1, queue_depth=2), "--think: pauses are between the I/Os of a thread, and 2 need as many"),
        (job(runtime_s=0.0), "--runtime: 0 is out of range: longer than 0s"),
        (job(runtime_s=math.nan), "--runtime: nan is out of range"),
    ],
)
def test_problems_name_the_option_and_the_range(bad: JobSpec, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        validate(bad)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
