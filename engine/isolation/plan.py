"""What the preset isolation measures: the victim, the loads of the aggressor, the caps, the time of each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.hostfs.sysblock import look_up
from engine.isolation.caps import NO_CAP, Cap, parse_cap
from engine.isolation.factor import figure_for
from engine.isolation.kept_point import POINTS
from engine.isolation.study import AggressorLoad, IsolationPoint, IsolationStudy
from engine.job.choices import Arrival
from engine.job.knobs import Knobs
from engine.job.sizes import format_blocks
from engine.job.spec import JobSpec
from engine.job.validate import validate
from engine.rate_search.plan import open_depth
from engine.replacing import replace
from engine.study.trial_file import TrialKind
from engine.sweep.axes import SweepAxis, parse_axis

POINT_S = 10
WITHIN = 1.5
_DEPTHS = "qd=1,2,4,8,16,32"
_AXES = ("qd", "bs")
_SPARE_S = 180
"""Time after its point at which the aggressor ends by itself, should nothing else end it."""
_LEAST_POINT_S = 3
_BESIDE_S = 3
"""Time of a point beside its measurement: a process that starts, and the second that it settles."""


class IsolationPlan(Struct, frozen=True):
    """What to measure."""

    victim: JobSpec
    """An open loop: response times count from the time an I/O was due."""
    loads: tuple[AggressorLoad, ...]
    caps: tuple[Cap, ...] | None
    """None: a half and a tenth of what the aggressor reaches without one."""
    seconds: int
    """Duration of each point."""
    within: float
    """How many times its response time alone the victim may have."""

    @property
    def armed(self) -> JobSpec:
        """The job as it is armed."""
        return self.victim

    @property
    def first(self) -> Knobs:
        """Knobs of the victim."""
        return self.victim.knobs

    @property
    def least_read_pct(self) -> float:
        """Both loads only read."""
        return 100.0

    @property
    def points(self) -> int:
        """How many there are, the victim alone at both ends included."""
        caps = 2 if self.caps is None else len([cap for cap in self.caps if cap != NO_CAP])
        return 2 + len(self.loads) * (1 + caps)

    @property
    def point_s(self) -> float:
        """Time that a point takes, about."""
        return float(self.seconds + _BESIDE_S)

    @property
    def trial_kind(self) -> TrialKind[IsolationPoint]:
        """How its points are kept."""
        return POINTS

    @property
    def curve_count(self) -> int:
        """Its points are one curve."""
        return 1

    @property
    def known_by(self) -> tuple[object, ...]:
        """Whatever makes points of another curve useless for this one."""
        caps = None if self.caps is None else [cap.text for cap in self.caps]
        return self.victim, self.loads, caps, str(self.seconds)

    @property
    def words(self) -> str:
        """Say in one line what is measured, and how long it takes."""
        total_s = self.points * self.point_s
        time = f"{total_s / 60:.0f} min" if total_s >= 90 else f"{total_s:.0f} s"
        return f"isolation: {self.points} points of {self.seconds} s, about {time}"

    @property
    def study(self) -> IsolationStudy:
        """Nothing is measured yet."""
        rate = self.victim.knobs.rate_iops or 0.0
        return IsolationStudy((), rate, figure_for(rate), self.within, (), expected=self.points)

    def aggressor(self, load: AggressorLoad) -> JobSpec:
        """Make the closed loop of one of its loads, which ends by itself should nothing else end it."""
        job = self.victim
        knobs = replace(job.knobs, queue_depth=load.queue_depth, rate_iops=None)
        if load.block != format_blocks(knobs.blocks):
            sizes = parse_axis(f"bs={load.block}")
            knobs = sizes.knob.turned(knobs, sizes.values[0])
        target = replace(job.targets[0], path=str(Path(job.targets[0].path or "").absolute()))
        return replace(
            job, targets=(target,), knobs=knobs, arrival=Arrival.CLOSED, runtime_s=float(self.seconds + _SPARE_S)
        )


def plan_isolation(
    job: JobSpec,
    *,
    vary: Sequence[str] = (),
    caps: Sequence[str] = (),
    seconds: float | None = None,
    within: float | None = None,
    has_depth: bool = False,
) -> IsolationPlan:
    """Plan the victim and the aggressor of a job.

    Args:
        job: the victim, whose rate it has; the aggressor reads with the same knobs but for `vary`.
        vary: axes of the aggressor.
        caps: limits on it, as --cap.
        seconds: time of each point; None: 10.
        within: how many times its response time alone the victim may have; None: 1.5.
        has_depth: whether the queue depth of the victim was chosen.

    Raises:
        UsageError: both loads cannot be made of it; the message has the fix.
    """
    if len(job.targets) != 1 or job.targets[0].path is None:
        raise UsageError("--preset isolation: name the one device or file that both loads read: --target")
    if job.knobs.read_pct != 100:
        raise UsageError("--preset isolation: both loads only read: leave --rw write and --read-pct out")
    if job.knobs.rate_iops is None:
        raise UsageError("--preset isolation: give the rate of the victim, as --rate 500")
    if within is not None and not within > 1:
        raise UsageError("--within: how many times its response time alone the victim may have: above 1, as 1.5")
    victim, loads = _victim(job, has_depth=has_depth), _loads(job, vary)
    limits = tuple(map(parse_cap, caps)) or None
    return IsolationPlan(victim, loads, limits, _seconds(seconds), within or WITHIN)


def _victim(job: JobSpec, *, has_depth: bool) -> JobSpec:
    knobs = job.knobs if has_depth else replace(job.knobs, queue_depth=open_depth(job))
    arrival = Arrival.POISSON if job.arrival is Arrival.CLOSED else job.arrival
    victim = replace(job, knobs=knobs, arrival=arrival, runtime_s=None, io_bytes=None, loops=None, ramp_s=0.0)
    validate(victim)
    return victim


def _loads(job: JobSpec, vary: Sequence[str]) -> tuple[AggressorLoad, ...]:
    axes: Mapping[str, SweepAxis] = {axis.knob.key: axis for axis in map(parse_axis, vary)}
    for key in axes:
        if key not in _AXES:
            raise UsageError(f"--vary {key}: the aggressor of --preset isolation varies {' and '.join(_AXES)}")
    depths = axes.get("qd", parse_axis(_DEPTHS))
    blocks = _values(axes["bs"]) if "bs" in axes else (format_blocks(job.knobs.blocks),)
    return tuple(AggressorLoad(int(depth), block) for block in blocks for depth in _values(depths))


def _values(axis: SweepAxis) -> tuple[str, ...]:
    return tuple(axis.shown(value) for value in axis.values)


def _seconds(runtime_s: float | None) -> int:
    seconds = POINT_S if runtime_s is None else int(runtime_s)
    if seconds < _LEAST_POINT_S:
        raise UsageError("--runtime: the time of each point of --preset isolation is 3s or longer")
    return seconds


def disks_of(devices: Sequence[Sequence[int]], sysfs: Path) -> tuple[str, ...]:
    """Name the whole disks of devices by their numbers, as a load has them: limits are of whole disks.

    Raises:
        UsageError: there are none, as on NFS.
    """
    numbers = dict.fromkeys(number for target in devices for number in target)
    found = (look_up(sysfs, number) for number in numbers)
    disks = tuple(dict.fromkeys(device.disk_folder.name for device in found if device is not None))
    if not disks:
        raise UsageError("--preset isolation: the target is on no block device: limits are of block devices")
    return disks
