"""What a job does on one of its targets, in options of fio (fio(1), JOB PARAMETERS), and the knobs read from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.errors import UsageError
from engine.job.distribution import Distribution, Pareto, Permutation, Uniform, Zipf, Zones
from engine.job.fixed_settings import rw_word
from engine.job.formats.fio_sections import Given
from engine.job.formats.fio_values import Units
from engine.job.knobs import KNOBS, FioNumber, Knob, Knobs
from engine.job.knobs.kinds import WholeNumber
from engine.job.rate_floor import CYCLE_S
from engine.job.sizes import format_duration, format_number, format_size
from engine.job.spec import Access, Arrival, Backend, BlockShare, JobSpec, Mode
from engine.replacing import replace


def take_numbers(given: Given, units: Units, knobs: Knobs) -> Knobs:
    """Take all such knobs.

    Raises:
        UsageError: two options for one knob are given, or a number is out of range.
    """
    for knob, number in _numbers():
        name, value = _take(given, units, knob, number)
        if value and _matters(number, knobs):
            knobs = replace(knob.turned(knobs, value), **number.names[name])
    return knobs


def number_options(knobs: Knobs) -> dict[str, str | None]:
    """Write all such knobs that are set."""
    values = ((number, knob.of(knobs)) for knob, number in _numbers())
    return {_name(number, knobs): str(value) for number, value in values if value and _matters(number, knobs)}


def _numbers() -> Iterator[tuple[Knob, FioNumber]]:
    return ((knob, knob.fio_number) for knob in KNOBS.values() if knob.fio_number is not None)


def _matters(number: FioNumber, knobs: Knobs) -> bool:
    return knobs.read_pct < 100 or not number.of_writes


def _name(number: FioNumber, knobs: Knobs) -> str:
    """Choose the option that says what the other knobs are."""
    fitting = (
        name for name, others in number.names.items() if all(getattr(knobs, id_) == others[id_] for id_ in others)
    )
    return next(fitting)


def _take(given: Given, units: Units, knob: Knob, number: FioNumber) -> tuple[str, int]:
    assert isinstance(knob.kind, WholeNumber)
    options = [option for option in map(given.take, number.names) if option is not None]
    asked = [(option, value) for option in options if (value := units.integer(option, most=knob.kind.most))]
    if len(asked) > 1:
        raise asked[1][0].error(f"{' and '.join(number.names)} at once are not driven: give one of them")
    return (asked[0][0].name, asked[0][1]) if asked else ("", 0)


Options = dict[str, str | None]
"""Options of a section; None is written without a value."""

_MODES: dict[Mode, Options] = {
    Mode.DIRECT: {"direct": "1"},
    Mode.BUFFERED: {"direct": "0"},
    Mode.SYNC: {"direct": "0", "sync": "sync"},
    Mode.DSYNC: {"direct": "0", "sync": "dsync"},
    Mode.DIRECT_SYNC: {"direct": "1", "sync": "sync"},
    Mode.DIRECT_DSYNC: {"direct": "1", "sync": "dsync"},
}


def fio_options(job: JobSpec, sections: int) -> Options:
    """Say in options of fio what a job does on one of several targets, but not which.

    Raises:
        UsageError: fio cannot express it.
    """
    knobs = job.knobs
    rw = rw_word(job.access, knobs.read_pct)
    jump = f":{'-' if job.jump_bytes < 0 else ''}{format_size(abs(job.jump_bytes))}" if job.jump_bytes else ""
    clones = knobs.queue_depth if job.backend is Backend.THREADS else 1
    options: Options = {"rw": rw + jump}
    if rw in ("rw", "randrw"):
        options["rwmixread"] = _whole("--read-pct", knobs.read_pct)
    options |= _blocks(knobs)
    if job.backend is Backend.THREADS:
        options |= {"ioengine": "psync", "iodepth": "1", "numjobs": str(knobs.queue_depth)}
    else:
        options |= {"ioengine": "io_uring", "iodepth": str(knobs.queue_depth)}
    options |= _MODES[knobs.mode]
    options |= _distribution_options(job) if job.access is Access.RANDOM else {}
    options |= _rate(job, sections)
    options |= _floor(job, sections)
    options |= number_options(knobs)
    options |= _where(job)
    options |= _times(job, clones)
    options |= _end(job, clones, len(job.targets[: knobs.stripe_width]) if sections == 1 else 1)
    return options | {"randseed": str(job.seed)}


def _where(job: JobSpec) -> Options:
    options: Options = {"offset": format_size(job.offset_bytes)} if job.offset_bytes else {}
    return options if job.align_bytes is None else options | {"blockalign": format_size(job.align_bytes)}


def _times(job: JobSpec, clones: int) -> Options:
    options: Options = {"ramp_time": _time(job.ramp_s)} if job.ramp_s else {}
    if job.runtime_s is not None:
        if job.runtime_s <= job.ramp_s:
            raise UsageError("--save-job: a turn comes before the time of --ramp is over: save it as .toml")
        options["runtime"] = _time(job.runtime_s - job.ramp_s)
        options |= {} if job.ends_by_bytes else {"time_based": "1"}
    if job.think_s:
        if job.knobs.queue_depth > clones:
            raise UsageError("--save-job: fio waits for all I/Os before a --think: use --engine threads, or --qd 1")
        options |= {"thinktime": f"{round(job.think_s * 1e6)}us", "thinktime_blocks": str(job.think_every)}
    return options


def _end(job: JobSpec, clones: int, files: int) -> Options:
    """Say after how much each of several clones ends, which all do the same."""
    if not job.ends_by_bytes:
        return {}
    loops, io_bytes = job.loops or 1, job.io_bytes
    if loops % clones == 0:
        loops //= clones
    elif io_bytes is not None and io_bytes * loops % clones == 0:
        loops, io_bytes = 1, io_bytes * loops // clones
    else:
        raise UsageError(f"--save-job: --loops {loops} cannot be shared by {clones} threads of fio: save it as .toml")
    options: Options = {"loops": str(loops)} if loops > 1 else {}
    return options if io_bytes is None else options | {"io_size": format_size(io_bytes * files)}


def _blocks(knobs: Knobs) -> Options:
    mixes = [knobs.blocks] if knobs.write_blocks is None else [knobs.blocks, knobs.write_blocks]
    if all(len(mix) == 1 for mix in mixes):
        return {"bs": ",".join(format_size(mix[0].block_bytes) for mix in mixes)}
    return {"bssplit": ",".join(map(_split, mixes))}


def _split(mix: Sequence[BlockShare]) -> str:
    return ":".join(f"{format_size(share.block_bytes)}/{_whole('--bs', share.percent)}" for share in mix)


def _distribution_options(job: JobSpec) -> Options:
    knobs = job.knobs
    if isinstance(knobs.distribution, Permutation):
        if job.backend is Backend.THREADS and knobs.queue_depth > 1:
            raise UsageError("--save-job: fio has no permutation over several threads: save it as .toml")
        return {}
    if isinstance(knobs.distribution, Uniform) and knobs.write_distribution is None:
        return {"norandommap": "1"}
    own = [knobs.distribution] if knobs.write_distribution is None else [knobs.distribution, knobs.write_distribution]
    if len(own) > 1 and not all(isinstance(each, Zones) for each in own):
        raise UsageError("--save-job: fio has --write-distribution for zones only: save it as .toml")
    prefix = "zoned:" if isinstance(own[0], Zones) else ""
    return {"random_distribution": prefix + ",".join(map(_distribution, own))}


def _distribution(distribution: Distribution) -> str:
    match distribution:
        case Zipf(exponent) if exponent != 1:
            return f"zipf:{format_number(exponent)}"
        case Pareto(hot_share):
            return f"pareto:{format_number(hot_share)}"
        case Zones(zones):
            pairs = ((zone.ios_pct, zone.space_pct) for zone in zones)
            return ":".join("/".join(_whole("--distribution", share) for share in pair) for pair in pairs)
        case _:
            raise UsageError(f"--save-job: fio has no such {distribution.kind} distribution: save it as .toml")


def _rate(job: JobSpec, sections: int) -> Options:
    if job.knobs.rate_iops is None:
        return {}
    clones = job.knobs.queue_depth if job.backend is Backend.THREADS else 1
    each, share = job.knobs.rate_iops / sections / clones, job.knobs.read_pct / 100
    rates = [part for part in (each * share, each * (1 - share)) if part]
    limits = ",".join(_whole("--rate (per target, thread and direction)", rate) for rate in rates)
    options: Options = {"rate_iops": limits}
    return options | {"rate_process": "poisson"} if job.arrival is Arrival.POISSON else options


def _floor(job: JobSpec, sections: int) -> Options:
    floor, clones = job.rate_min, job.knobs.queue_depth if job.backend is Backend.THREADS else 1
    if floor is None:
        return {}
    if sections > 1 or clones > 1 or 0 < job.knobs.read_pct < 100:
        raise UsageError("--save-job: fio judges --rate-min for each target, thread and direction: save it as .toml")
    name = "rate_min" if floor.in_bytes else "rate_iops_min"
    rate = format_size(round(floor.per_s)) if floor.in_bytes else _whole("--rate-min", floor.per_s)
    options: Options = {name: rate}
    if floor.cycle_s != CYCLE_S:
        options["ratecycle"] = _whole("--rate-min (cycle in ms)", round(floor.cycle_s * 1000, 6))
    return options


def _whole(option: str, value: float) -> str:
    if abs(value - round(value)) > 1e-9:
        raise UsageError(
            f"--save-job: fio takes whole numbers only: {option}: {value:g}: change it, or save it as .toml"
        )
    return str(round(value))


def _time(length_s: float) -> str:
    return format_duration(length_s) if length_s == int(length_s) else f"{round(length_s * 1e6)}us"
