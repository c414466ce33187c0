"""Types shared by all folders: raw samples, derived frames, and the interface of sources."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from threading import Event as StopFlag
from typing import Protocol, runtime_checkable

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from collectors.graph import Graph
from engine.events import Event

MISSING = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""Raw value of a counter that the kernel, device or tier does not have; the derived value is NaN."""


class Kind(StrEnum):
    """How a raw column behaves from one sample to the next."""

    COUNTER = "counter"
    """Counts events; decreases only on reset, or on wrap if the kernel's long has 32 bits."""
    COUNTER32 = "counter32"
    """Wraps at 2^32 (the millisecond fields of the block layer)."""
    GAUGE = "gauge"
    """Valid at the instant of the sample."""
    INTERVAL = "interval"
    """Amount since the previous sample of the same source."""
    PEAK = "peak"
    """Largest value since the previous sample of the same source."""


class Tier(IntEnum):
    """How a figure was obtained; every figure is shown with it.

    Of the first four larger is better. With AT_LEAST it is exact for what was seen, but I/Os were lost: the true value
    is as large or larger.
    """

    NONE = 0
    KERNEL = 1
    SAMPLED = 2
    EXACT = 3
    AT_LEAST = 4


class Column(Struct, frozen=True):
    """One raw column of a table."""

    id: str
    kind: Kind


class Schema(Struct, frozen=True):
    """Name and columns of a raw table; stored with sessions so that old files stay readable."""

    name: str
    columns: tuple[Column, ...]

    def index(self, column_id: str) -> int:
        """Position of a column.

        Raises:
            KeyError: the schema has no such column.
        """
        for position, column in enumerate(self.columns):
            if column.id == column_id:
                return position
        raise KeyError(column_id)


class Rows(Struct, frozen=True, eq=False, dict=True):
    """Identity of the rows of a table; the same object until a row is added or removed, so compare by `is`.

    Keys are unique and never reused: a kernel name reused for another device has another key. Names are for display
    and may repeat over time.
    """

    keys: tuple[str, ...]
    names: tuple[str, ...]

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Row of each key."""
        return dict(zip(self.keys, range(len(self.keys)), strict=True))

    def __len__(self) -> int:
        return len(self.keys)

    def taken(self, at: Iterable[int]) -> Rows:
        """Return those at some positions, in that order."""
        positions = tuple(at)
        return Rows(tuple(self.keys[row] for row in positions), tuple(self.names[row] for row in positions))


class Table(Struct, frozen=True, eq=False):
    """Raw values of one subject at one time.

    `values` has shape (len(rows), len(schema.columns)) and dtype uint64; MISSING marks missing values.
    """

    schema: Schema
    rows: Rows
    values: NDArray[np.uint64]

    def column(self, column_id: str) -> NDArray[np.uint64]:
        """One raw column, shape (len(rows),), uint64."""
        return self.values[:, self.schema.index(column_id)]


class HistogramScale(Struct, frozen=True):
    """Log-linear buckets: `unit_ns << n` splits into `2 ** sub_bits` equal buckets per octave.

    Values below `unit_ns * 2 ** sub_bits` have one bucket per unit; above, bucket
    `((octave + 1) << sub_bits) + mantissa` of the value counted in units.
    """

    unit_ns: int
    sub_bits: int


class Part(StrEnum):
    """Part of an I/O's time; a series named by direction alone is the total."""

    TOTAL = "total"
    QUEUE = "queue"
    SERVICE = "service"
    RTT = "rtt"
    """Time in network and server of an NFS call; its total is the execute time."""


class Histograms(Struct, frozen=True, eq=False):
    """Latencies of the interval that ended with a sample, as sparse cells of log-linear histograms.

    Cell i says: `count[i]` (uint64) I/Os of row `row[i]` (uint32) and series `series[series_index[i]]` (uint8)
    fell into bucket `bucket[i]` (uint16). Any rows or intervals merge by adding, so percentiles of groups and of
    ranges come from sums and never from averages of percentiles.
    """

    scale: HistogramScale
    rows: Rows
    series: tuple[str, ...]
    row: NDArray[np.uint32]
    series_index: NDArray[np.uint8]
    bucket: NDArray[np.uint16]
    count: NDArray[np.uint64]


class Device(Struct, frozen=True):
    """Static facts of one block device, read only when the topology changes (sysfs, udev)."""

    key: str
    """Identity of this device instance: kernel name, device number and diskseq."""
    name: str
    kind: str
    """disk, partition, loop, zram, dm, md, nvme-path, ..."""
    major: int
    minor: int
    diskseq: int | None = None
    persistent_id: str = ""
    """Persistent id: wwid, NGUID/EUI or serial; empty if the device has none."""
    size_bytes: int | None = None
    model: str = ""
    vendor: str = ""
    serial: str = ""
    rotational: bool | None = None
    scheduler: str = ""
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    nr_requests: int | None = None
    """Requests the block layer admits (queue/nr_requests)."""
    queue_limit: int | None = None
    """Outstanding commands the device or path admits (device/queue_depth and the like)."""
    write_cache: str = ""
    iostats: bool | None = None
    read_only: bool | None = None
    removable: bool | None = None
    bio_based: bool = False
    """Whether it has no driver queue of its own: only the total time is known."""
    friendly_name: str = ""
    """Operator's name: dm name, alias or backing file."""
    holders: tuple[str, ...] = ()
    slaves: tuple[str, ...] = ()
    read_ahead_kb: int | None = None
    """What buffered sequential reads fetch ahead, in units of 1024 bytes (queue/read_ahead_kb)."""
    max_sectors_kb: int | None = None
    """The largest request, in units of 1024 bytes (queue/max_sectors_kb): the kernel cuts larger I/Os."""
    max_hw_sectors_kb: int | None = None
    """The most that max_sectors_kb may be set to."""
    max_segments: int | None = None
    """Pieces of memory that a request may consist of (queue/max_segments)."""
    chunk_kb: int | None = None
    """Bytes on one member or zone before the next, in units of 1024: no request crosses a border (queue/chunk_sectors,
    md/chunk_size, of a striped map queue/minimum_io_size)."""
    virt_boundary_mask: int | None = None
    """Gaps in the memory of a request begin and end at borders of this mask (queue/virt_boundary_mask)."""


class HostFacts(Struct, frozen=True):
    """Facts of the host needed to interpret its figures."""

    hostname: str = ""
    kernel: str = ""
    machine: str = ""
    cpus: int = 0
    memory_bytes: int | None = None
    long_bits: int = 64
    """Width of the kernel's unsigned long, at which block counters wrap."""
    boot_id: str = ""
    tier: Tier = Tier.KERNEL
    notices: tuple[str, ...] = ()
    """Kernel caveats and missing rights, one line each, for screens and doctor."""
    cpu_model: str = ""
    """Model of the first processor, as /proc/cpuinfo names it; empty on machines that have no such line."""


class Topology(Struct, frozen=True, eq=False, dict=True):
    """Devices and host facts; the same object until something changes, so compare by `is`."""

    devices: Mapping[str, Device] = field(default_factory=dict)
    """Devices by key."""
    host: HostFacts = field(default_factory=HostFacts)
    graph: Graph = field(default_factory=Graph)
    """Device graph; empty in recordings of versions without it."""

    @cached_property
    def bio_based(self) -> frozenset[str]:
        """Keys of devices without a driver queue of their own."""
        return frozenset(device.key for device in self.devices.values() if device.bio_based)

    @cached_property
    def uncounted(self) -> frozenset[str]:
        """Keys of devices with accounting off (queue/iostats is 0): their counters do not change under load."""
        return frozenset(device.key for device in self.devices.values() if device.iostats is False)

    def same_as(self, other: Topology) -> bool:
        """Whether both are equal."""
        mine, theirs = (self.devices, self.host, self.graph.records), (other.devices, other.host, other.graph.records)
        return mine == theirs


class Sample(Struct, frozen=True, eq=False):
    """All data read at one tick: raw and cumulative, exactly as recorded.

    Rates divide by differences of `monotonic_ns`; `time_ns` (CLOCK_REALTIME) is for display and may step.
    """

    time_ns: int
    monotonic_ns: int
    topology: Topology
    tables: Mapping[str, Table] = field(default_factory=dict)
    histograms: Mapping[str, Histograms] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    late_ns: int = 0
    """Delay of the tick behind its schedule."""
    cost_ns: int = 0
    """CPU time the monitor itself spent since the previous sample."""


class FrameTable(Struct, frozen=True, eq=False):
    """Derived values of one subject over one interval, by field id of the registry.

    Columns are float64 of shape (len(rows),) with NaN for missing. `tiers` holds uint8 codes of Tier per row for
    fields whose tier varies by row; a field without an entry has the tier its registry entry names.
    """

    rows: Rows
    columns: Mapping[str, NDArray[np.float64]]
    tiers: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)

    def value(self, field_id: str, row: int) -> float:
        """One figure, NaN where it is missing."""
        column = self.columns.get(field_id)
        return float("nan") if column is None else float(column[row])

    def with_columns(self, columns: Mapping[str, NDArray[np.float64]]) -> FrameTable:
        """Return the table with columns added or replaced."""
        return FrameTable(self.rows, {**self.columns, **columns}, self.tiers)

    def taken(self, at: Sequence[int] | NDArray[np.intp], rows: Rows | None = None) -> FrameTable:
        """Return the rows at some positions, in that order; `rows` are these, where the caller keeps them."""
        chosen = np.asarray(at, np.intp)
        columns = {field_id: values[chosen] for field_id, values in self.columns.items()}
        tiers = {field_id: codes[chosen] for field_id, codes in self.tiers.items()}
        return FrameTable(self.rows.taken(chosen.tolist()) if rows is None else rows, columns, tiers)


class Looking(Struct, frozen=True):
    """CPU time that looking took in an interval, over all CPUs."""

    elapsed_s: float
    sampling_s: float
    """CPU time of the threads that take samples."""
    programs_s: float
    """CPU time of the programs of exact time in the kernel; NaN where it was not measured for the whole interval."""
    ios: float
    """I/Os that they traced, likewise."""
    is_measured: bool
    """Whether the kernel measured the programs; else it is an estimate."""

    @property
    def sampling_pct(self) -> float:
        """Share of one CPU."""
        return 100.0 * self.sampling_s / self.elapsed_s

    @property
    def programs_pct(self) -> float:
        """Share of one CPU."""
        return 100.0 * self.programs_s / self.elapsed_s

    @property
    def ns_per_io(self) -> float:
        """Time of the programs per I/O; NaN without I/O."""
        return 1e9 * self.programs_s / self.ios if self.ios else math.nan


class Frame(Struct, frozen=True, eq=False):
    """Figures for screens, exports and reports: derived from two samples, immutable.

    Tables: "disks", "host" (one row), "processes", "load" (one row per target), "load_total" (one row), and with
    multipath "paths" and "hbas".
    """

    time_ns: int
    monotonic_ns: int
    elapsed_s: float
    """Length of the interval; NaN on the first sample and across a gap."""
    tables: Mapping[str, FrameTable]
    topology: Topology
    events: tuple[Event, ...] = ()
    late_s: float = 0.0
    cost_pct: float = float("nan")
    """CPU of the monitor itself, in percent of one core."""
    looking: Looking | None = None
    """What looking cost in the interval; None if its length is not known."""
    losses: Mapping[str, int] = field(default_factory=dict)
    """Losses of exact time since it began, by column of the raw table tracer; empty without exact time."""
    states_age_s: float = float("nan")
    """Largest age of the states of paths in the topology; NaN if they are not polled."""
    usual_ms: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Usual await of each row in the session, by table ("disks"); NaN until enough intervals had I/O, and empty where
    no session is followed, as in reports."""


class Step(Struct, frozen=True, eq=False):
    """A sample with the one before it in the recording; `previous` is None at a start and after a gap."""

    previous: Sample | None
    current: Sample
    frame: Frame | None = None
    """Frame of the sample if the source needed it itself, as for alerts."""


class Source(Protocol):
    """Interface of all sources of samples: live, replay and test."""

    @property
    def seekable(self) -> bool:
        """Whether the source can seek; if so it is a SeekableSource."""

    @property
    def interval_s(self) -> float:
        """Nominal time between samples, in seconds."""

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield steps when due until `stop` is set or the source ends; blocks in between."""

    def close(self) -> None:
        """Release descriptors, threads and probes; may be called twice."""


@runtime_checkable
class TagWaitWatcher(Protocol):
    """A source that can time waits for free tags, which takes two more probes on every I/O."""

    def watch_tag_wait(self, on: bool | None) -> None:
        """Time them from the next sample on, or not; None: automatic, while a queue is full."""


@runtime_checkable
class AdjustableSource(Protocol):
    """A source whose interval can change while it yields steps."""

    def set_interval(self, interval_s: float) -> None:
        """Yield the next steps at this interval, within the limits of the source; takes effect after the next step."""


class SeekableSource(Source, Protocol):
    """A source with a cursor: a recording. Calls come from the UI thread and wake `steps`."""

    @property
    def start_ns(self) -> int:
        """Wall time of the first sample."""

    @property
    def end_ns(self) -> int:
        """Wall time of the last sample; grows while the file is being written."""

    @property
    def position_ns(self) -> int:
        """Wall time of the sample last yielded."""

    @property
    def is_moving(self) -> bool:
        """Whether a seek or step is still to be done."""

    @property
    def paused(self) -> bool:
        """Whether replay is paused."""

    @property
    def speed(self) -> float:
        """Recorded seconds per second."""

    @property
    def notice(self) -> str:
        """One line about damage found in the file; empty if none."""

    def pause(self, paused: bool) -> None:
        """Pause or resume."""

    def set_speed(self, speed: float) -> None:
        """Set recorded seconds per second, 0.1 to 1000."""

    def step(self, count: int) -> int | None:
        """Pause, then move by `count` samples, back if negative; returns its wall time, None if that cannot be read."""

    def seek(self, time_ns: int) -> None:
        """Go to the sample at or before a wall time."""

    def window(self, end_ns: int, count: int) -> Iterator[Step]:
        """Read up to `count` steps ending at a wall time, oldest first, one at a time in memory."""

    def between(self, start_ns: int, end_ns: int) -> Iterator[Step]:
        """Read the steps of a range of wall time, one at a time in memory."""

    def events(self) -> list[Event]:
        """All events of the recording, by time."""
