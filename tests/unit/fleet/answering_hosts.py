"""Hosts that answer what a load over them is asked for, at once; one may refuse turns."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.fleet.controller import FleetController, FleetSettings
from collectors.fleet.fleet_drive import FleetDrive, FleetWork
from collectors.fleet.frames import Frame, decode, encode
from collectors.fleet.host_jobs import HostJob
from collectors.model import Sample, Topology
from engine.job.file import parse_job
from engine.job.scenario import Turn
from engine.job.spec import JobSpec, Knobs, TargetSpec
from tests.unit.fleet.made_hosts import NoLinks, clock, greet

_NOTHING = {"ios": 0, "bytes": 0, "errors": 0, "latency_sum_ns": 0, "peak_sum_ns": 0, "peak_seconds": 0}
_MEASURED: dict[str, object] = {**_NOTHING, "least_ns": None, "largest_ns": None, "buckets": [], "counts": []}


class AnsweringLinks(NoLinks):
    """Connections to agents that drive nothing."""

    def __init__(self) -> None:
        self.fleet: FleetController | None = None
        self.knobs: dict[str, list[Knobs]] = {}
        """Knobs each host was turned to."""
        self.refuses: dict[str, str] = {}
        """What hosts say to a turn of the queue depth above 8."""
        self.takes_ns = 0
        """How long a turn takes to be in force, by the clocks of the hosts."""
        self.asked: list[Frame] = []
        """Everything asked for that is answered."""

    def send(self, host: str, data: bytes) -> None:
        """Answer as an agent would."""
        frame = decode(data.rstrip(b"\n"))
        if "number" not in frame:
            return
        self.asked.append(frame)
        error = ""
        if frame["type"] == "turn":
            knobs = parse_job(str(frame["job"]), "test").knobs
            error = self.refuses.get(host, "") if knobs.queue_depth > 8 else ""
            if not error:
                self.knobs.setdefault(host, []).append(knobs)
        self._say(host, "done", frame, error)
        if frame["type"] == "stop":
            self.end(host)

    def end(self, host: str) -> None:
        """End the load of a host."""
        assert self.fleet is not None
        measured = {"read": _MEASURED, "write": _MEASURED}
        self.fleet.line(host, encode("result", document={"duration_s": 1.0}, measured=measured).rstrip(b"\n"))

    def _say(self, host: str, type_: str, asked: Frame, error: str) -> None:
        assert self.fleet is not None
        at_ns = asked.get("at_ns", 0)
        assert type(at_ns) is int
        ended_ns = at_ns + (self.takes_ns if asked["type"] == "turn" else 0)
        answer = encode(type_, number=asked["number"], what=asked["type"], at_ns=at_ns, ended_ns=ended_ns, error=error)
        self.fleet.line(host, answer.rstrip(b"\n"))


def answering_fleet(*names: str, bound_ns: int = 200_000) -> tuple[FleetController, AnsweringLinks]:
    """Hosts that are live, each with a clock known so well."""
    links = AnsweringLinks()
    fleet = links.fleet = FleetController(names, links, FleetSettings())
    for name in names:
        greet(fleet, name)
        clock(fleet, name, trip_ns=2 * bound_ns)
        fleet.hosts[name].sample = Sample(0, 0, Topology(), {})
    return fleet, links


def drive_of(
    fleet: FleetController,
    knobs: Knobs,
    paths: Sequence[str] = (),
    window_s: float = 1.0,
    scenario: tuple[float | None, Sequence[Turn]] = (None, ()),
) -> FleetDrive:
    """A drive of one job on all hosts; scratch files unless paths are given. A scenario is a runtime and turns."""
    targets = tuple(map(TargetSpec, paths)) or (TargetSpec(),)
    runtime_s, turns = scenario
    job = JobSpec(targets=targets, knobs=knobs, runtime_s=runtime_s)
    jobs = {name: HostJob(job, tuple(paths)) for name in fleet.hosts}
    return FleetDrive(fleet, FleetWork(jobs, turns, window_s, False, False))
