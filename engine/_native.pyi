"""The native core: kernel readers, the session codec and the load engine.

Every call that reads the kernel, compresses or waits releases the GIL. Native threads never call Python. OSErrors carry
errno and, where there is one, the path; ValueErrors say which argument is out of range.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs

__all__ = [
    "HISTOGRAM_BUCKETS",
    "HISTOGRAM_SUB_BITS",
    "PROCESS_COLUMNS",
    "SLOW_COLUMNS",
    "TRACE_COLUMNS",
    "AttributeWatch",
    "BlockReader",
    "BlockTracer",
    "EpochStats",
    "FlowShare",
    "FreezeTracer",
    "GroupReader",
    "InflightSampler",
    "LoadEngine",
    "LoadPath",
    "LoadTarget",
    "NfsTracer",
    "TableCodec",
    "ThrottleTracer",
    "TraceReader",
    "VerifyPass",
    "changed_rows",
    "compress",
    "content",
    "counter_deltas",
    "decode_cells",
    "decompress",
    "encode_cells",
    "fill",
    "flow_shares",
    "host_cpu_ns",
    "is_sysfs",
    "journal_facts",
    "kernel_types",
    "percentiles",
    "read_attributes",
    "read_only_ring_refusal",
    "tracer_refusal",
    "uring_refusal",
]

# ---------------------------------------------------------------------------------------------------------- sample

@final
class BlockReader:
    """Counters of all whole block devices, one array per call.

    As long as `/proc/diskstats` has up to `switch_bytes` it is read in one go: some 1,500 busy or 4,000 idle devices.
    Above, `/sys/block/*/stat` is read through descriptors that stay open, because the kernel walks its device list
    again for every page of diskstats it returns.
    The soft limit of open files is raised for them; where the hard limit is too low, diskstats is read all the same.
    """

    def __new__(
        cls,
        procfs: str = "/proc",
        sysfs: str = "/sys",
        method: Literal["auto", "diskstats", "sysfs"] = "auto",
        *,
        switch_bytes: int = 230_000,
        spare_columns: int = 0,
    ) -> Self:
        """Remember where to read; nothing is opened before the first `read`.

        `spare_columns` more columns, all missing, are appended for the caller to fill without copying the array.
        """
    @property
    def method(self) -> Literal["diskstats", "sysfs"]:
        """What the last read used."""
    @property
    def generation(self) -> int:
        """Grows whenever the set of devices seen by `read` changed; names must then be asked again."""
    @property
    def malformed(self) -> int:
        """Lines (or files) of the last read that were skipped because they could not be understood."""
    def names(self) -> list[str]:
        """Kernel names of the rows of the last read; bytes that are not UTF-8 come as surrogate escapes."""
    def numbers(self) -> NDArray[np.uint32]:
        """Device numbers of the rows, shape (n, 2): major, minor."""
    def read(self) -> NDArray[np.uint64]:
        """Read once: shape (n, 17 + spare), columns as the raw table disk begins, 2**64-1 where missing.

        Raises:
            OSError: SYSFS/block cannot be listed, or neither source can be read.
        """
    def rescan(self) -> None:
        """List devices again before the next read; to be called after hot-plug."""

@final
class InflightSampler:
    """A thread that reads `/sys/block/X/inflight` and `stat` of a few devices, or of groups, many times a second.

    On current kernels the first counts requests in the driver only, the second all that are accounted as in flight.
    The instants are random. Between two calls of `read` the rate is the same throughout, so that no time weighs more
    than another: as high as the samples before called for, up to `rate_hz` and within `cpu_share` of one core. It falls
    meanwhile only if samples have come to cost 1.5 times that share.
    """

    def __new__(cls, sysfs: str = "/sys", rate_hz: float = 1000.0, cpu_share: float = 0.01) -> Self: ...
    def watch(self, names: Sequence[str]) -> list[str]:
        """Replace the watched devices and return those there are; sums of those that stay go on."""
    def watch_groups(self, groups: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Replace what is watched by groups: a name, and the files below sysfs that are added up in one sample.

        Each file holds one number (`host_busy`) or two (`inflight`). A group of which a file cannot be opened, or is
        gone later, is left out as a whole. Sums of those that stay with the same files go on.
        """
    def read(self) -> tuple[list[str], NDArray[np.uint64]]:
        """Names and, per name, shape (n, 9).

        Sum of requests seen, samples, samples that saw any, peak since the last call; of the I/Os that the device's
        `stat` has in flight at the same samples their sum, samples that saw any, sum of squares, and the sum of those
        that waited for a driver that held about as much as its recent maximum; and for how many microseconds every
        sample has seen one. These five are 2^64-1 for groups, and where there is no `stat`.
        """
    @property
    def cpu_ns(self) -> int:
        """CPU time the thread has used."""
    def close(self) -> None:
        """Stop the thread and close its descriptors; may be called twice."""

@final
class GroupReader:
    """I/O counters of many control groups, read again and again; one array per call.

    Counters of a group include those of its descendants: below a group whose counters are unchanged nothing is read.
    Files stay open, up to `most_open`, for which the soft limit of open files is raised where the hard one allows it.
    """

    def __new__(
        cls,
        counters: Sequence[str],
        pressure: str | None = None,
        *,
        adds_up: bool = True,
        most_open: int = 1024,
        most_rows: int = 16384,
    ) -> Self:
        """Name the files of each group: `io.stat` and `io.pressure`, or both counter files of cgroup v1, bytes first.

        Raises:
            ValueError: `counters` are neither one nor two.
        """
    @property
    def generation(self) -> int:
        """Changes when `places` may have changed."""
    @property
    def has_more(self) -> bool:
        """Whether groups are left out, because there would be more rows than `most_rows`."""
    def follow(self, groups: Sequence[tuple[int, str, int]]) -> bool:
        """Take the groups that there are now: number, folder, and position of the group above (the root: its own).

        What is known of groups with the same number and folder stays.

        Returns:
            Whether any came or went.

        Raises:
            ValueError: a group is before the one above it.
        """
    def read(self, *, retry: bool = False) -> bool:
        """Read all counters that can have changed, missing files again with `retry`; whether any has changed."""
    def places(self) -> NDArray[np.uint64]:
        """Position of the group, major and minor of the device: a row for each device that a group did I/O on."""
    def values(self) -> NDArray[np.uint64]:
        """Values of the same rows, uint64 of shape (rows, 13), 2**64 - 1 where one is missing.

        Columns: bytes read, bytes written, reads, writes, discarded bytes, discards, the four `cost.*` in microseconds,
        `cost.vrate` in hundredths of a percent, microseconds in which some and all tasks of the group waited.
        """
    def close(self) -> None:
        """Close all files."""

def read_attributes(
    folder: str, names: Sequence[str], attributes: Sequence[str], *, threads: int = 1
) -> list[list[bytes | None]]:
    """Read FOLDER/NAME/ATTRIBUTE for every name and attribute, at most 4096 bytes of each.

    One row per name in the order given; None where a file is missing, unreadable or has vanished.

    Raises:
        OSError: the folder itself cannot be opened.
    """

def is_sysfs(folder: str) -> bool:
    """Whether a folder is of a kernel's own sysfs, where inode numbers are never given twice and files are live."""

@final
class AttributeWatch:
    """Attributes of many devices that are read repeatedly; a read returns only what changed.

    In a kernel's own sysfs, descriptors stay open, which makes a read four times cheaper (1.2 us an attribute) for
    4.7 KiB of kernel memory each. The soft limit of open files is raised for them; what exceeds the hard
    limit is opened for every read. An attribute that a device does not have is tried again at every 32nd read.
    """

    def __new__(cls, folder: str, names: Sequence[str], attributes: Sequence[str], *, keep: bool | None = None) -> Self:
        """Remember what to read, FOLDER/NAME/ATTRIBUTE each.

        `keep` says whether descriptors stay open; None: where `is_sysfs(folder)`.

        Raises:
            OSError: the folder itself cannot be opened.
        """
    @property
    def kept(self) -> int:
        """Descriptors that are open."""
    def read(self, rows: Sequence[int] | None = None) -> list[tuple[int, list[bytes | None]]]:
        """Rows of `names` with an attribute that has another value than at the last read, with all their values.

        The first read returns every row; None stands for what is missing, unreadable or has vanished.

        Args:
            rows: those to read; None for all.

        Raises:
            IndexError: there is no such row.
        """

# ----------------------------------------------------------------------------------------------------------- exact

TRACE_COLUMNS: list[str]
"""Columns of `TraceReader.read`, as the raw table trace: sums since tracing began, gauges (`*_now`) and peaks
since the last read (`*_peak`, `*_max_ns`).

A read or write is counted when it completes, together with its queue time (accounted start to last issue to the driver)
and its service time (that issue to completion), so that means are sums divided by counts. As in diskstats a write is
whatever writes and is no discard; `others` are discards, flushes and passthrough commands. `unstamped` counts reads
and writes whose start the kernel did not note (queue/iostats = 0): their queue time is in no sum. `tag_waits` I/Os
waited `tag_wait_ns` for a free tag while that was watched. Devices without requests (dm, md, zram) have no
queue time. `busy_ns`, `lost_in_driver_ns`, `in_driver_peak_most` and `uncounted`: see the raw table trace.
"""
SLOW_COLUMNS: list[str]
"""Columns of `TraceReader.slowest`: completion (CLOCK_MONOTONIC), row of the device, first sector, bytes, operation
(enum req_op of blk_types.h), wait for a tag (0: not known), queue and service time, process and thread that submitted,
its cgroup (inode number in cgroup2), queue plus service time.

The accounted start is `done_ns - latency_ns`, the issue to the driver `done_ns - service_ns`.
"""

PROCESS_COLUMNS: list[str]
"""Columns of a row of `TraceReader.processes`: row of the device, process id (0 for a workqueue), kind (1 process,
2 thread of the kernel, 3 workqueue), start (CLOCK_BOOTTIME; 0: not known), cgroup of the thread that submitted first,
reads, writes, their bytes, queue plus service time of both, the name as its bytes in four little-endian numbers.
"""

@disjoint_base
class TraceReader:
    """Reads what a BlockTracer counts, in another process too; no rights are needed.

    Several readers do not disturb each other; each has deltas of its own. Intervals are ended by the tracer's `read`
    alone: peaks and slow I/Os are those of the interval it ended last.
    """

    def __new__(cls, descriptors: Mapping[str, int]) -> Self:
        """Map the descriptors of `BlockTracer.map_descriptors`, which may be closed afterwards.

        Raises:
            OSError: one is no map of this version of the tracer.
            ValueError: one is missing or not open.
        """
    @property
    def generation(self) -> int:
        """Grows whenever a row came or now stands for another disk; names and numbers must then be asked again."""
    def names(self) -> list[str]:
        """Kernel names of the rows, as in /proc/diskstats; hidden paths of NVMe namespaces are rows of their own."""
    def numbers(self) -> NDArray[np.uint32]:
        """Device numbers of the rows, shape (n, 2): major, minor."""
    def read(self) -> NDArray[np.uint64]:
        """Read all counters: shape (n, len(TRACE_COLUMNS))."""
    def cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
        """Histogram cells that grew since the last call: row, series, bucket, count as in collectors.model.Histograms.

        Series 0 queue read, 1 queue write, 2 service read, 3 service write; HistogramScale(unit_ns=64, sub_bits=4).
        """
    def slowest(self) -> tuple[NDArray[np.uint64], list[str]]:
        """Slowest I/Os of the interval that ended last, slowest first: SLOW_COLUMNS, names of the threads.

        The slowest of every device is among them as far as they fit: 64 per CPU for what was a device's slowest so
        far, and as many for the rest, of which the slower stay.
        """
    def processes(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Read what processes did on each device since the last call: PROCESS_COLUMNS, and cells of their histograms.

        A cell has the position of the row, the bucket of HistogramScale(unit_ns=1024, sub_bits=2), and the count. The
        first call of a reader has all since tracing began.
        """
    def oldest(self) -> NDArray[np.uint64]:
        """Age of the oldest I/O in flight per row, in ns; 2**64-1 where there is none."""
    def groups_at(self, slots: Sequence[int]) -> NDArray[np.uint64]:
        """Read groups by what `BlockTracer.regroup` returned, as `BlockTracer.read_groups` does."""
    def losses(self) -> dict[str, int]:
        """Count what was not seen since tracing began.

        `table_full`: I/Os not timed; `unseen`: completions without an issue, such as those in flight at the start;
        `stale`: I/Os without a completion, found when the request was used again; `untracked_devices`,
        `series_without_histogram`: table full, the latter for ranges of latencies of a device; `unstamped`: see
        TRACE_COLUMNS; `rescued`: issues and completions for which the kernel skipped a program and the second copy did
        its work; `requeued`: I/Os the driver returned, not a loss; `without_process`: I/Os that no process was found
        for, or no room for it; `overtaken`: ends of busy time and maxima that other CPUs overtook too often to be kept.
        """
    def close(self) -> None:
        """Free the maps; may be called twice. All other calls raise ValueError afterwards."""

@final
class BlockTracer(TraceReader):
    """Programs on the kernel's block tracepoints that time every I/O of every disk, and their counters.

    Devices register themselves at their first I/O; rows stay. Nothing is pinned: however the process
    ends, the kernel removes everything. Several tracers do not disturb each other.
    """

    def __new__(
        cls, sysfs: str = "/sys", *, histograms: int = 3000, process_idle_s: float = 60.0, fetch: bool = True
    ) -> Self:
        """Load and attach; `histograms` limits how many devices get histograms, and counters for each group of CPUs.

        A process without I/O on a device for `process_idle_s` loses its place there; its next I/O takes another.
        Without `fetch` the programs are those for kernels whose atomic operations have no results, though it has them:
        `busy_ns`, `in_driver_peak` and `in_driver_peak_most` are missing (2**64-1), and busy time of groups.

        Raises:
            OSError: the step that the kernel refused, with the fix; see `tracer_refusal`.
            ValueError: `histograms` is not from 1 to 65535, or the time is negative.
        """
    def read(self) -> NDArray[np.uint64]:
        """End the interval and read all counters: shape (n, len(TRACE_COLUMNS)).

        I/Os whose completion no program saw are removed, so that nothing stays in flight. Bios are
        watched from now on if a disk without requests has got its size.

        Raises:
            OSError: the kernel refuses that.
        """
    def regroup(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """Replace the groups (LUNs, ports, heads of NVMe multipath), each given by the kernel names of its members.

        A group with the members of an earlier one continues counting. A device counts from the first read after its
        first I/O on.

        Returns:
            Where each group is in the kernel's table, for `groups_at`.

        Raises:
            ValueError: a device is in more than 8 groups, or there are more than the tables hold.
        """
    def read_groups(self) -> NDArray[np.uint64]:
        """Read the groups as ordered in `regroup`, shape (groups, 2): busy time (ns) and members busy now."""
    def losses(self) -> dict[str, int]:
        """Count what was not seen since tracing began, as TraceReader.losses and more.

        `healed`: I/Os without a completion, found by `read`; `recursion_misses`: programs the kernel skipped because
        they were running on that CPU already; `tag_sleeps`: times that submitters slept for a tag, not a loss, which
        only kernels with the tracepoint block_rq_tag_wait say (Linux 7.2).
        """
    def form(self) -> tuple[bool, bool]:
        """Return whether the programs have typed arguments (tp_btf), and atomic operations with results (BPF_FETCH).

        What the kernel has is found by trying. Without typed arguments I/Os cost more time; without results: `fetch`.
        """
    def watch_tag_wait(self, on: bool) -> None:
        """Switch the programs on that time how long a submitter waits before it gets a request.

        With the tracepoint block_rq_tag_wait only I/Os that waited are counted, and one program runs on each I/O.
        Without it every I/O is, and two do, which cost most of all programs.

        Raises:
            OSError: the kernel refuses.
        """
    def rescan(self) -> None:
        """Check again for disks without requests, whose bios must be traced; to be called after hot-plug.

        Raises:
            OSError: the kernel refuses.
        """
    def pause(self) -> None:
        """Detach all programs; counters stand still.

        Raises:
            OSError: the kernel refuses.
        """
    def resume(self) -> None:
        """Attach again after `pause`; waits for tags are not watched.

        Raises:
            OSError: the kernel refuses.
        """
    def map_descriptors(self) -> dict[str, int]:
        """Duplicate the descriptors of the maps, for a TraceReader elsewhere; the caller closes them.

        A TraceReader never writes, but the kernel maps no descriptor that is open for reading only: a process that has
        them could falsify what this tracer counts, and nothing else. Other users need tracers of their own.

        Raises:
            OSError: no more descriptors.
        """
    def close(self) -> None:
        """Detach everything and free the maps; may be called twice. All other calls raise ValueError afterwards."""

def kernel_types(sysfs: str = "/sys") -> tuple[str, bool]:
    """Path of the description of the kernel's types, and whether it is the kernel's own.

    Raises:
        OSError: there is none, or the file that LUNSCOPE_BTF names has not the types of this kernel; with the fix.
    """

def tracer_refusal(procfs: str = "/proc", sysfs: str = "/sys", *, rights: bool = True) -> str:
    """Why the exact tier cannot work here (kernel, BTF, lockdown, rights), with the fix; empty if it can.

    Without `rights` only what the kernel lacks counts, which no helper with more privileges changes. The types are
    those of the file that the environment variable LUNSCOPE_BTF names where the kernel has none.
    """

# ----------------------------------------------------------------------------------------------------------- codec

@final
class TableCodec:
    """The values of one table as of the last tick encoded or decoded; both sides of a session file keep one per table.

    Rows that did not change cost nothing. The others are encoded by column as differences from the last values, or from
    the last difference where that is shorter, as bit lengths under zstd and the bits below the leading one. Arithmetic
    wraps, so resets and missing values need no marks of their own. Not to be shared between threads.
    """

    def __new__(cls, rows: int, columns: int) -> TableCodec:
        """All zero.

        Raises:
            ValueError: more than 2**23 cells.
        """
    def encode(self, values: NDArray[np.uint64]) -> bytes:
        """How to get from the last values to these, which become the last; shape (rows, columns), C order.

        Raises:
            ValueError: another shape.
        """
    def apply(self, data: bytes) -> None:
        """Undo `encode` on the other side; output is bounded by the shape whatever `data` says.

        Raises:
            ValueError: `data` is damaged; the values are as before.
        """
    def values(self) -> NDArray[np.uint64]:
        """Return the last values, a new array of shape (rows, columns)."""
    def settle(self) -> None:
        """Forget the last difference, because the next one is over another length of time."""
    def rearranged(self, source: NDArray[np.int64]) -> TableCodec:
        """Return the same for other rows: row i of the result is row `source[i]` of this, zero where that is negative.

        Raises:
            ValueError: no such row, or too many.
        """
    def copy(self) -> TableCodec: ...

def encode_cells(
    row: NDArray[np.uint32], series: NDArray[np.uint8], bucket: NDArray[np.uint16], count: NDArray[np.uint64]
) -> bytes:
    """Histogram cells (collectors.model.Histograms) as bytes.

    Raises:
        ValueError: arrays of different length, or more than 2**21 cells.
    """

def decode_cells(
    data: bytes,
) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
    """Undo `encode_cells`; cells come sorted by row, series and bucket.

    Raises:
        ValueError: `data` is damaged.
    """

def compress(data: bytes) -> bytes:
    """One zstd frame without its magic number."""

def decompress(data: bytes, limit: int) -> bytes:
    """Undo `compress`.

    Raises:
        ValueError: damaged, or longer than `limit` bytes when unpacked.
    """

def changed_rows(before: NDArray[np.uint64], now: NDArray[np.uint64], required: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Rows of `now` that differ from `before`, or have a missing value (2^64 - 1) in a column of `required`.

    One pass over both arrays, shape (rows, columns); `required` has shape (columns,), the result (rows,).

    Raises:
        ValueError: arrays of different shapes.
        TypeError: an array that is not contiguous.
    """

def counter_deltas(
    before: NDArray[np.uint64],
    now: NDArray[np.uint64],
    kinds: NDArray[np.uint8],
    sources: NDArray[np.uint16],
    wrap: int,
) -> NDArray[np.float64]:
    """Change of each column over one interval, shape (columns, rows); NaN where unknown.

    `before` and `now` have shape (rows, columns), `kinds` and `sources` (columns,). Kinds: 0 a counter, 1 one that
    wraps at 2^32, 2 a gauge, 3 an amount or a largest value since the previous sample. A counter that decreased means
    that its source was reset: every column of that source but the gauges is NaN in that row. It wrapped instead if its
    change modulo 2^32 is at most `wrap`.

    Raises:
        ValueError: arrays of different shapes, or another kind.
        TypeError: an array that is not contiguous.
    """

def percentiles(
    row: NDArray[np.uint32],
    bucket: NDArray[np.uint16],
    count: NDArray[np.uint64],
    rows: int,
    wanted: Sequence[tuple[int, int]],
    unit_ns: int,
    sub_bits: int,
) -> NDArray[np.float64]:
    """Nearest-rank percentiles of sparse histograms (collectors.derive.percentiles), shape (len(wanted), rows).

    `wanted` are thousandths of a percent and the I/Os a row must have; NaN where it has fewer. Cells are taken fastest
    by row and bucket, and left out from row `rows` on.

    Raises:
        ValueError: arrays of different length, or `sub_bits` above 15.
        TypeError: an array that is not contiguous.
    """

# ------------------------------------------------------------------------------------------------------------ load

HISTOGRAM_SUB_BITS: int
"""Sub-buckets per octave as a power of two (6: at most 0.8 % error at the middle of a bucket)."""
HISTOGRAM_BUCKETS: int

@final
class LoadPath:
    """One of several device nodes of a target, by its open descriptor."""

    def __new__(
        cls,
        fd: int,
        name: str,
        *,
        weight: int = 1,
        preferred: bool = False,
        cell: int | None = None,
        outstanding: int = 0,
    ) -> Self:
        """Note what the policies ask for: `cell` is the NUMA node of its adapter, `outstanding` what it had in flight.

        Raises:
            ValueError: a number is negative.
        """

@final
class LoadTarget:
    """One target of the load by open descriptors, which the engine duplicates; it never opens anything by name."""

    def __new__(
        cls,
        fd: int,
        name: str,
        size_bytes: int,
        align_bytes: int,
        *,
        writable: bool,
        paths: Sequence[LoadPath] | None = None,
    ) -> Self:
        """Duplicate the descriptor, or those of `paths`: nodes that lead to the same data, among which I/Os choose.

        `align_bytes` is what direct I/O needs. Where the descriptor can write and the target must not be written, the
        same file is opened again for reading only, as a duplicate could write.

        Raises:
            OSError: the descriptor is not open, or its file cannot be opened again.
            ValueError: `size_bytes` or `align_bytes` is 0, or `writable` is said of a descriptor that only reads.
        """

@final
class FlowShare:
    """The part of one load in a flow; counts from `flow_shares` on until its load ends, or it is dropped."""

def flow_shares(loads: Sequence[tuple[int, float | None, bool]]) -> list[FlowShare]:
    """Make the parts of loads that hold each other to a ratio of I/Os: weight, how long it waits, whether it ends all.

    A load that is ahead waits, for the given seconds at a time if there are any, until the others have issued their
    part. It is never ahead by more than 1/256 of the least part, at most 32 I/Os, and one. The end of a load with
    which all end stops the others.

    Raises:
        ValueError: a weight is below 1, or a wait negative or no number.
    """

@final
class EpochStats:
    """What was measured while no knob moved, without the transient after the last turn.

    Histogram cells are as in collectors.model.Histograms: target, direction (0 read, 1 write), bucket, count.
    """

    @property
    def index(self) -> int: ...
    @property
    def knobs(self) -> Knobs: ...
    @property
    def turned_ns(self) -> int:
        """CLOCK_MONOTONIC of the knob turn (or start) that opened the epoch."""
    @property
    def start_ns(self) -> int | None:
        """CLOCK_MONOTONIC at which measuring began: all I/Os of earlier epochs done; None if that never came."""
    @property
    def end_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the turn or stop that closed it; None while it is open."""
    @property
    def counts(self) -> NDArray[np.uint64]:
        """Shape (targets, 2, 6): ios, bytes, latency sum, least latency, largest latency (ns), errors per direction."""
    @property
    def fsyncs(self) -> NDArray[np.uint64]:
        """Shape (targets, 4): fsyncs, latency sum, largest latency (ns), errors."""
    @property
    def cpu_ns(self) -> tuple[int, int, int, int | None] | None:
        """CPU time while measuring: the engine's, the whole host's, and that of all its processors, idle or not.

        The host's is counted in ticks of USER_HZ, 10 ms as a rule. None before measuring began. The last is how long
        the engine's threads, added up, were ready and waited for a processor (schedstat); None where the kernel does
        not count it.
        """
    @property
    def peaks(self) -> NDArray[np.uint64]:
        """Shape (targets + 1, 3, 2): sum of the per-second maxima (ns) and how many seconds had any.

        The middle axis is read, write, both; the last row is over all targets. What is left at the end counts as a
        second if it is at least half of one, or all there is.
        """
    @property
    def transient_ios(self) -> int:
        """I/Os that completed between the turn and the start of measuring, or after the end; in no statistic.

        Over all epochs the measured I/Os and these add up to the counters.
        """
    @property
    def cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]: ...
    @property
    def services(self) -> NDArray[np.uint64]:
        """Shape (targets, 2, 3): sum, least and largest of the times from submit to reap (ns); 0 in a closed loop.

        In a closed loop latencies are just that; elsewhere they count from the moment an I/O was meant to be issued.
        """
    @property
    def service_cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
        """Histogram of the same times; empty in a closed loop."""
    @property
    def skipped(self) -> NDArray[np.uint64]:
        """Shape (targets,): arrivals that waited a second for a free slot while this epoch was measured, and got none.

        Logical I/Os that fan out over targets are counted at the first.
        """
    @property
    def path_counts(self) -> NDArray[np.uint64]:
        """As `counts`, a row per path in the order of targets, failed attempts among the errors.

        No rows where no target has several.
        """
    @property
    def path_cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]: ...
    @property
    def logical_counts(self) -> NDArray[np.uint64]:
        """As `counts`, one row: I/Os as they were before they were cut into parts; all 0 where none were.

        The latency of one is that of its slowest part.
        """
    @property
    def logical_peaks(self) -> NDArray[np.uint64]:
        """As `peaks`, shape (2, 3, 2)."""
    @property
    def logical_cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]: ...
    @property
    def delays(self) -> NDArray[np.uint64]:
        """Shape (targets, 2): logical I/Os that ended with this target, and nanoseconds the others had waited.

        Only logical I/Os of several parts count; the waiting is from the last part but one to the last.
        """
    @property
    def policy_ns(self) -> float | None:
        """Mean time that choosing a path and learning from its end took, per I/O, timing included; None if none was."""

@final
class LoadEngine:
    """Worker threads that keep `queue_depth` I/Os outstanding on each of the first `stripe_width` targets.

    Knobs are applied without restarting anything: raising issues more, lowering stops refilling, and workers waiting on
    a stalled device are woken. Every I/O is counted in exactly one epoch. An epoch is measured from the moment all I/Os
    issued before its turn have completed, but not before 100 ms have passed.

    Backend "uring" runs `Knobs.threads` threads with a ring each, which share every target's depth. Backend "threads"
    runs one thread per outstanding I/O, at most 1,000, whatever `threads` says.

    The descriptors must be as the mode of the first knobs says; turning it sets or clears O_DIRECT on them. Sync and
    dsync flag every write. An fsync takes a slot of its target's depth and is in no statistic of reads or writes.

    I/Os no larger than the stripe unit, if it is a multiple of them, are driven on each target by itself. Others are
    drawn in the address space that the targets form as a stripe and fan out: one part per target touched, which is what
    queue depths and statistics then count; the rate counts whole I/Os. With `copies` every so many neighbouring targets
    are one column of the stripe: writes go to all of them, reads to the one the policy chooses, and a read that fails
    there to another.

    A target with several paths sends each I/O over the one the policy chooses. A path that fails one is left, the I/O
    tried on another, and its first block read every 100 ms until it answers for the same disk.

    A target with 16 errors in a row is failing: one I/O every 100 ms probes it until one succeeds.

    `arrival` "constant" or "poisson" is an open loop: I/Os arrive at `rate_iops`, of which every target gets an equal
    share, whether or not others have completed. `queue_depth` then limits what is outstanding. An arrival that finds no
    free slot waits for one, and is skipped and counted after a second. Latencies count from the arrival.

    `journals` makes it a verified load: every 512 bytes that are written are stamped, data read is compared with what
    was written, and no two writes to one range are outstanding at once: the later waits. The journal of each target is
    an empty file by its open descriptor, or in memory where that is None.

    The address space of a target begins at `offset_bytes`. Random offsets are multiples of `align_bytes`, or of their
    block. Sequential streams have slices of the space or, with `stream_step_bytes`, start that far apart and have one
    length; `jump_bytes` are left out after each block, or gone back. `separate`: reads and writes each have a position.

    With `io_bytes` or `loops` the load ends after `loops` times `io_bytes`, or the whole space, on each target, and
    epoch 0 is measured from its first I/O on. `ramp_s` is the least time an epoch is open before it is measured.
    `think_s` is the pause of a thread, which must have one I/O outstanding at most, after every `think_every` I/Os.

    `flow` holds the load to its part of the I/Os of several, which share counters: a worker that is ahead waits. A load
    that ended counts no more.

    `poll`: the threads of "uring" stay awake while anything is outstanding, which takes a processor each and spares
    the time of being woken. `dry`: rings get no-ops instead of I/Os, to measure the engine alone.
    """

    def __new__(
        cls,
        targets: Sequence[LoadTarget],
        knobs: Knobs,
        settings: LoadSettings,
    ) -> Self:
        """Set up rings, buffers and files; nothing is issued before `start`.

        Raises:
            OSError: the kernel refuses a ring, memory or a descriptor; the text says what, and the fix.
            ValueError: a knob is out of range for the targets.
        """
    def start(self) -> None:
        """Start the workers; epoch 0 opens.

        Raises:
            ValueError: the load was started or stopped before.
        """
    def end_after(self, runtime_s: float | None) -> None:
        """End the load a time after its start and not when was said before; None: only `stop` ends it.

        Raises:
            ValueError: `runtime_s` is negative or no number.
        """
    def apply(self, knobs: Knobs) -> int:
        """Turn to new knobs, wake the workers and return the index of the epoch this opens.

        Before the start it replaces the knobs of epoch 0.

        Raises:
            OSError: the kernel refuses threads or memory; the load goes on with the old knobs.
            ValueError: a knob is out of range, and the load goes on with the old ones; or the load has ended.
        """
    @property
    def running(self) -> bool:
        """Whether workers still issue; false after `stop`, after the runtime, or when every worker failed."""
    @property
    def done(self) -> bool:
        """Whether it ended because every target in use has transferred its `io_bytes` and `loops`."""
    @property
    def waits(self) -> bool:
        """Whether nothing is issued yet in the open epoch.

        Its knobs turn direct I/O on or off: older I/Os must complete first, and cached data be written back.
        """
    @property
    def fault(self) -> str:
        """Why the load ended by itself, empty if it did not."""
    @property
    def features(self) -> list[str]:
        """What the kernel granted: "defer_taskrun", "registered_files", ...; "preadv2" for the threads backend.

        "read_only_ring": no target is armed for writing, and the kernel refuses everything but reads on the rings.
        "read_only_files": targets that are not armed for writing are open for reading only.
        """
    def counters(self) -> NDArray[np.uint64]:
        """Shape (targets, 18), columns as the raw table load; takes the peaks, so there is one caller."""
    def cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
        """Histogram cells of I/Os completed since the last call, transient ones too; one caller.

        Directions 2 and 3 are the service times of reads and writes in an open loop.
        """
    def path_counters(self) -> NDArray[np.uint64]:
        """Shape (paths, 12), columns as the raw table load_path; takes the peaks; no rows without a choice."""
    def logical_counters(self) -> NDArray[np.uint64]:
        """Shape (9,), columns as the raw table load_logical; takes the peaks."""
    def logical_cells(self) -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.uint16], NDArray[np.uint64]]:
        """Return `cells` of logical I/Os."""
    def slowest(self) -> NDArray[np.uint64]:
        """Slowest I/Os since the last call, at most 16, slowest first: shape (n, 6), as schemas.SLOW_LOAD begins.

        Without fsyncs and without the wait before submission; one caller.
        """
    def errors(self) -> list[tuple[int, str, int, int, int]]:
        """(target, "read" or "write", errno, offset of the first, count), the most frequent first.

        errno 0 is a short transfer.
        """
    def contents(self) -> NDArray[np.uint64]:
        """Shape (targets, 3): reads that were judged, about 100 per second; those compressible; those all zeros."""
    def epochs(self) -> list[EpochStats]:
        """All epochs so far, the last one open while running; none before the start."""
    @property
    def verified_run(self) -> int:
        """When a verified load was set up, in nanoseconds since 1970: its number in all it writes; 0 of others."""
    def verified(self) -> NDArray[np.uint64]:
        """Shape (targets, 5): bytes written, of reads compared, raced and unwritten; ranges found damaged.

        Raced are reads that met a write to the same range, or one that had failed; unwritten those where this load
        wrote nothing. All 0 if it is no verified load.
        """
    def damage(self) -> list[tuple[int, _DamageRow]]:
        """Damage that reads met, each with its target, in the order it was met."""
    def final_passes(self) -> list[VerifyPass]:
        """One per target of a verified load, over what it wrote; to be run when the load has stopped."""
    def cpu_ns(self) -> int:
        """CPU time used by the workers, and by the threads the kernel adds for I/O on rings that would block."""
    def outstanding(self, at_least_s: float = 0.0) -> NDArray[np.uint64]:
        """Shape (targets, 2): I/Os outstanding for that time, and when the oldest was first issued.

        The moment is in nanoseconds of `time.monotonic_ns`, to 65 us; 0 if there is none. Calls that write cached data
        back before the mode turns count too. After `stop` they are the I/Os that were given up.

        Raises:
            ValueError: `at_least_s` is negative or no number.
        """
    def drain(self, timeout_s: float) -> bool:
        """Stop issuing and wait for what is outstanding, up to a time; whether all completed. May be called again.

        Raises:
            ValueError: `timeout_s` is negative or no number.
        """
    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop issuing, wait for what is outstanding, join; whether all completed in time. May be called twice.

        I/Os that do not complete are cancelled as far as the kernel can; memory it may still write to is not freed.
        """

_DamageRow: TypeAlias = tuple[str, int, int, list[int]]
"""Kind, offset, length, and the numbers that engine.damage names for this kind."""

@final
class VerifyPass:
    """Reads a target and judges every 512 bytes that a verified load wrote there, by themselves and by its journal."""

    def __new__(cls, target: LoadTarget, journal: int | None = None) -> Self:
        """Prepare to read all of a target; `journal` is the open descriptor of the journal of its last verified load.

        Raises:
            OSError: the journal cannot be read or mapped.
            ValueError: it is no journal.
        """
    def run(self, threads: int = 4) -> bool:
        """Read and judge; blocks. False if it was cancelled. To be called once.

        Raises:
            OSError: no memory or no thread; what cannot be read is damage.
        """
    def cancel(self) -> None:
        """Make `run` return soon; from any thread."""
    @property
    def progress(self) -> float:
        """Share done, 0 to 1."""
    def outstanding(self, at_least_s: float = 0.0) -> tuple[int, int]:
        """Return how many reads are outstanding for that time, and when the oldest began (`time.monotonic_ns`, or 0).

        Raises:
            ValueError: `at_least_s` is negative or no number.
        """
    def damage(self) -> list[_DamageRow]:
        """List what was found, at most about 10,000 ranges, by offset."""
    def sums(self) -> tuple[int, int, int, int, int, int]:
        """Bytes: good, of those the journal's, foreign, of loads elsewhere, skipped, damaged.

        Foreign is what no verified load wrote; elsewhere what one wrote to something stored here, such as a file;
        skipped was not read, as nothing was written there.
        """
    @property
    def latest_run(self) -> int:
        """Run of the latest data at their own offset; 0 if there are none."""

def journal_facts(fd: int) -> tuple[int, int, int, int] | None:
    """Run, number of the target, size and grain in bytes; None if the file is no journal, or a damaged one.

    Raises:
        OSError: it cannot be read.
    """

def fill(fd: int, offset: int, length: int, seed: int) -> int:
    """Write incompressible bytes, the same for the same seed and offset; returns how many, less when the disk is full.

    Raises:
        OSError: the first error if nothing was written.
    """

def content(data: bytes) -> Literal["dense", "compressible", "zeros"]:
    """Classify a block by the chi square of its first 4 KiB of bytes; compressible if 5 % or more could be saved."""

def host_cpu_ns() -> tuple[int, int]:
    """CPU time since boot of all processors: busy, and all. Waiting for I/O is not busy; in ticks of USER_HZ."""

def read_only_ring_refusal() -> str:
    """Why a ring that is not armed for writing could write here nevertheless; empty if the kernel refuses that.

    Tried: such a ring is given a write to memory of this process, which the kernel must refuse with EACCES.
    """

def uring_refusal() -> str:
    """Why io_uring cannot be used here (seccomp, io_uring_disabled, old kernel), with the fix; empty if it can."""

@final
class NfsTracer:
    """Program on the tracepoint sunrpc:rpc_stats_latency that times each call of NFS clients.

    Where mountstats counts a call this does, too, but callbacks, locks and access control lists are left out.
    """

    def __new__(cls, sysfs: str = "/sys", *, places: int = 2048) -> Self:
        """Load and attach; `places` is how many combinations of client, transport and operation can be told apart.

        Each is 4,736 bytes. The description of the tracepoint is read from tracefs below `sysfs`.

        Raises:
            OSError: the step that the kernel refused; tracefs is not readable, or sunrpc is not loaded.
            ValueError: `places` is not from 1 to 65536.
        """
    def read(self) -> tuple[NDArray[np.uint64], list[str], NDArray[np.uint64]]:
        """Read what ended since the last call.

        Returns:
            Shape (n, 10), a row per RPC client, transport and operation with calls: number of the client, id of the
            transport (2^32 - 1 where the kernel does not say, before Linux 6.7), version of NFS, calls, their time in
            queue, RTT and execute in microseconds, and the largest of each. The name of the operation of each row. And
            shape (m, 4), by what the histograms have grown: row, series (queue, RTT, execute), bucket, count. Buckets:
            1 us, 16 per octave.
        """
    def slowest(self) -> tuple[NDArray[np.uint64], list[str], list[str]]:
        """List the slowest calls of the interval that `read` ended, the slowest first.

        Returns:
            Shape (n, 9): CLOCK_MONOTONIC of the end, client, transport, version, times in queue, RTT and execute in
            microseconds, XID (0: not known), process (0: a worker of the kernel ended it). The name of the operation
            of each, and of the command.
        """
    def losses(self) -> tuple[int, int]:
        """Count calls that no place was left for, and those for which the kernel skipped the program."""
    def close(self) -> None:
        """Detach; may be called twice. All other calls raise ValueError afterwards."""

@final
class FreezeTracer:
    """Programs on the kernel's freeze and thaw of filesystems that note when each began and ended; needs fentry."""

    def __new__(cls, sysfs: str = "/sys") -> Self:
        """Load and attach.

        Raises:
            OSError: the step that the kernel refused.
        """
    def read(self) -> list[tuple[str, int, int, int, int]]:
        """Return the latest 64 freezes since the programs were attached, in no order.

        Each is the name of the device as the filesystem has it, its major and minor, and begin and end in nanoseconds
        of CLOCK_MONOTONIC; the end is 0 while it is frozen.

        Raises:
            ValueError: it is closed.
        """
    def close(self) -> None:
        """Detach; may be called twice."""

@final
class ThrottleTracer:
    """Programs on the kernel's block throttle that time how long limits of control groups hold I/Os.

    Linux 5.18 or later with fentry (CONFIG_FUNCTION_TRACER); io.max of cgroup v2 and blkio.throttle of v1.
    """

    def __new__(cls, sysfs: str = "/sys", *, places: int = 8192) -> Self:
        """Load and attach; `places` is how many pairs of group and device can be told apart (864 bytes each).

        Raises:
            OSError: the step that the kernel refused.
            ValueError: `places` is not from 1 to 1048576.
        """
    def read(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Read all waits that have ended.

        Returns:
            Shape (n, 5), a row per group and device in the order of their first wait, new ones at the end: inode
            number of the group's folder, major and minor of the device, I/Os held, their time in nanoseconds. And
            shape (m, 3), by what the histograms have grown since the last call: row, bucket, count. Buckets: 1024 ns,
            8 per octave.
        """
    def losses(self) -> tuple[int, int]:
        """Count I/Os that no place was left for, and I/Os held that there was no room for."""
    def close(self) -> None:
        """Detach; may be called twice. All other calls raise ValueError afterwards."""
