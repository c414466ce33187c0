"""Tunables of the block layer: Documentation/ABI/stable/sysfs-block, Documentation/block/queue-sysfs.rst."""

from __future__ import annotations

from engine.text import whole_number
from engine.tune.forms import Bracketed, words_of_brackets
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind, between, fixed, no_default, one_of

_LEAST_REQUESTS = 4
"""BLKDEV_MIN_RQ of include/linux/blkdev.h; smaller values are accepted and become this."""
_MOST_SCHEDULED = 2048
"""MAX_SCHED_RQ of block/blk-mq-sched.h."""
_PAGE_KB = 4
_READ_AHEAD = ("queue/read_ahead_kb",)
"""Set to its default when a queue gets new limits (blk_apply_bdi_limits, block/blk-settings.c)."""


def _requests(tree: KernelTree, target: Target) -> Legal:
    """Take the tags of the hardware, or MAX_SCHED_RQ with a scheduler (queue_requests_store, block/blk-sysfs.c)."""
    scheduler = Bracketed().value(tree.read(f"{target.folder}/queue/scheduler") or "none", "")
    tags = whole_number(tree.read(f"{target.folder}/mq/0/nr_tags") or "")
    return Legal((), _LEAST_REQUESTS, tags if scheduler == "none" else _MOST_SCHEDULED)


def _schedulers(tree: KernelTree, target: Target) -> Legal:
    return Legal(words_of_brackets(tree.read(f"{target.folder}/queue/scheduler") or ""))


def _sectors(tree: KernelTree, target: Target) -> Legal:
    return Legal((), _PAGE_KB, whole_number(tree.read(f"{target.folder}/queue/max_hw_sectors_kb") or ""))


def _queue(  # noqa: PLR0917 - a row of the table below
    name: str,
    help_text: str,
    unit: str = "",
    least: int | None = None,
    most: int | None = None,
    default: str = "",
) -> Tunable:
    given = fixed(default) if default else no_default
    return Tunable(name, TunedKind.DISK, f"queue/{name}", help_text, unit, legal=between(least, most), default=given)


def _scheduling(  # noqa: PLR0917 - a row of the table below
    name: str, scheduler: str, help_text: str, unit: str, least: int | None, most: int | None, default: str
) -> Tunable:
    return Tunable(
        f"iosched/{name}",
        TunedKind.DISK,
        f"queue/iosched/{name}",
        f"{scheduler}: {help_text}",
        unit,
        legal=between(least, most),
        default=fixed(default) if default else no_default,
        phase=2,
        made_by="scheduler",
    )


QUEUE = (
    Tunable(
        "nr_requests",
        TunedKind.DISK,
        "queue/nr_requests",
        "requests the queue takes before submitters wait",
        "requests",
        legal=_requests,
        made_by="scheduler",
    ),
    Tunable(
        "scheduler",
        TunedKind.DISK,
        "queue/scheduler",
        "I/O scheduler; it sets nr_requests, wbt_lat_usec, iosched/* anew",
        form=Bracketed(),
        legal=_schedulers,
        phase=0,
        resets=("queue/nr_requests", "queue/wbt_lat_usec", "queue/iosched"),
    ),
    _queue("read_ahead_kb", "buffered reads in sequence fetch so much ahead; whole pages", "KiB", 0, None, "128"),
    Tunable(
        "max_sectors_kb",
        TunedKind.DISK,
        "queue/max_sectors_kb",
        "largest request; larger I/Os are split",
        "KiB",
        legal=_sectors,
        phase=0,
        resets=_READ_AHEAD,
    ),
    _queue("nomerges", "merging of requests: 0 all, 1 simple ones only, 2 none", "", 0, 2, "0"),
    _queue("rq_affinity", "completion on the submitter's: 1 group of CPUs, 2 CPU; 0 anywhere", "", 0, 2, "1"),
    _queue("wbt_lat_usec", "write-back is throttled above this read latency; 0 off, -1 default", "us", -1, None),
    _queue("io_timeout", "time after which a request counts as lost", "ms", 1, None, "30000"),
    Tunable(
        "write_cache",
        TunedKind.DISK,
        "queue/write_cache",
        "cache the kernel assumes; 'write through' sends no flushes",
        legal=one_of("write back", "write through"),
        phase=0,
        resets=_READ_AHEAD,
    ),
    Tunable(
        "iostats",
        TunedKind.DISK,
        "queue/iostats",
        "accounting of I/O; without it all counters stand still",
        legal=between(0, 1),
        default=fixed("1"),
        phase=0,
        resets=_READ_AHEAD,
    ),
)

SCHEDULERS = (
    _scheduling("read_expire", "mq-deadline", "a read is served within this", "ms", 0, None, "500"),
    _scheduling("write_expire", "mq-deadline", "a write is served within this", "ms", 0, None, "5000"),
    _scheduling("writes_starved", "mq-deadline", "batches of reads before one of writes", "", None, None, "2"),
    _scheduling("front_merges", "mq-deadline", "merge at the front of requests, too", "", 0, 1, "1"),
    _scheduling("fifo_batch", "mq-deadline", "requests of a batch", "requests", 0, None, "16"),
    _scheduling("prio_aging_expire", "mq-deadline", "lower priorities wait at most this long", "ms", 0, None, "10000"),
    _scheduling("async_depth", "mq-deadline", "tags for writes and asynchronous reads", "requests", 1, None, ""),
    _scheduling("read_lat_nsec", "kyber", "target latency of reads", "ns", 1, None, "2000000"),
    _scheduling("write_lat_nsec", "kyber", "target latency of synchronous writes", "ns", 1, None, "10000000"),
    _scheduling("slice_idle", "bfq", "time it waits for the next I/O of the same process", "ms", 0, None, "8"),
    _scheduling("slice_idle_us", "bfq", "as slice_idle, finer", "us", 0, None, "8000"),
    _scheduling("low_latency", "bfq", "favour interactive and soft real-time processes", "", 0, 1, "1"),
    _scheduling("strict_guarantees", "bfq", "one request at a time for exact shares", "", 0, 1, "0"),
    _scheduling("max_budget", "bfq", "sectors of a process in its turn; 0 automatic", "sectors", 0, None, "0"),
    _scheduling("timeout_sync", "bfq", "longest turn of a process", "ms", 0, None, ""),
    _scheduling("fifo_expire_sync", "bfq", "a synchronous request is served within this", "ms", 0, None, ""),
    _scheduling("fifo_expire_async", "bfq", "an asynchronous request is served within this", "ms", 0, None, ""),
    _scheduling("back_seek_max", "bfq", "longest seek backwards", "KiB", 0, None, "16384"),
    _scheduling("back_seek_penalty", "bfq", "cost of a seek backwards, times that forwards", "", 1, None, "2"),
)
