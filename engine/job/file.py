"""Job files: TOML with the names of the options of `lunscope run`.

    target = ["/dev/sdb", "/dev/sdc"]   # "scratch" asks for a file that lunscope makes and removes,
                                        # "lun:sda,sdb=3" drives two paths to one LUN, the second of weight 3
    rw = "randrw"
    read_pct = 70
    bs = "4k:60,16k:40"
    write_bs = "64k"
    distribution = "hot:90/10"
    qd = 16
    stripe_width = 2
    runtime = "30s"

A hyphen may stand for every underscore. What a job may write is said on the command line only.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import LunscopeError, UsageError
from engine.job.distribution_text import format_distribution
from engine.job.read_write import access_and_mix, rw_word
from engine.job.sizes import format_blocks, format_duration, format_number, format_size
from engine.job.spec import DEFAULT_GIVE_UP_S, JobSpec, Knobs
from engine.job.target_text import format_target
from engine.job.validate import knob_problems, setting_problems
from engine.job.values import READERS, WrongTypeError
from engine.text import safe_text

KNOBS = {
    "bs": "blocks",
    "write_bs": "write_blocks",
    "distribution": "distribution",
    "write_distribution": "write_distribution",
    "qd": "queue_depth",
    "rate": "rate_iops",
    "stripe_width": "stripe_width",
    "mode": "mode",
    "threads": "threads",
    "fsync_every": "fsync_every",
    "policy": "policy",
}
"""Keys that are knobs, with their fields; `read_pct`, which `rw` may say as well, is one more."""
_SETTINGS = {
    "target": "targets",
    "name": "name",
    "streams": "streams",
    "mirror": "copies",
    "qd_total": "total_queue_depth",
    "stripe_unit": "stripe_unit_bytes",
    "engine": "backend",
    "size": "size_bytes",
    "runtime": "runtime_s",
    "give_up": "give_up_s",
    "seed": "seed",
    "arrival": "arrival",
    "poll": "poll",
    "verify": "verify",
}
_COMMAND_LINE_ONLY = ("allow_write", "destroy_data")


@dataclass(frozen=True, slots=True)
class JobSource:
    """The text of a job file, to say where a key stands; tomllib keeps no positions."""

    path: str
    text: str
    first_line: int = 1
    """Where the table begins that is read."""

    def error(self, key: str, what: str) -> UsageError:
        """Build the error for one key."""
        pattern = re.compile(rf"""^\s*(?:\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
        lines = enumerate(self.text.splitlines(), 1)
        number = next((number for number, line in lines if number >= self.first_line and pattern.match(line)), None)
        return UsageError(f"{self.path}{f', line {number}' if number else ''}: {safe_text(key)}: {what}")


def _unknown(source: JobSource, key: str, name: str) -> UsageError:
    if name in _COMMAND_LINE_ONLY:
        return source.error(key, f"not in a job file: give --{name.replace('_', '-')} on the command line")
    near = difflib.get_close_matches(name, READERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(READERS)}"
    return source.error(key, f"unknown key: {hint}")


def read_values(source: JobSource, table: Mapping[str, object]) -> dict[str, tuple[str, Any]]:
    """Read the values of a table by the names of their keys, each with the key as it was written.

    Raises:
        UsageError: an unknown key, one that comes twice, or a value that it does not take.
    """
    values: dict[str, tuple[str, Any]] = {}
    for key, raw in table.items():
        name = key.replace("-", "_")
        if name not in READERS:
            raise _unknown(source, key, name)
        if name in values:
            raise source.error(key, f"given twice, also as {values[name][0]}")
        try:
            values[name] = key, READERS[name](raw)
        except WrongTypeError as wrong:
            raise source.error(key, f"{raw!a} is not {wrong}") from None
        except UsageError as error:
            raise source.error(key, str(error)) from None
    return values


def job_of(source: JobSource, values: Mapping[str, tuple[str, Any]]) -> JobSpec:
    """Make a job of what was read.

    Raises:
        UsageError: a value is out of range.
    """
    given = {name: value for name, (_, value) in values.items()}
    try:
        access, read_pct = access_and_mix(given.get("rw"), given.get("read_pct"))
    except UsageError as error:
        raise source.error(values["rw"][0], str(error)) from None
    knobs = replace(Knobs(), read_pct=read_pct, **{KNOBS[name]: given[name] for name in KNOBS if name in given})
    settings = {_SETTINGS[name]: given[name] for name in _SETTINGS if name in given}
    if "target" in given and "stripe_width" not in given:
        knobs = replace(knobs, stripe_width=len(given["target"]))
    job = replace(JobSpec(), knobs=knobs, access=access, **settings)
    for problem in (*knob_problems(job.knobs), *setting_problems(job)):
        key = values.get(problem.option.replace("-", "_"))
        if key is not None:
            raise source.error(key[0], problem.text)
    return job


def parse_job(text: str, path: str = "job") -> JobSpec:
    """Make a job of the text of a job file; `path` names it in errors.

    Without `stripe_width` the job is as wide as it has targets.

    Raises:
        UsageError: no TOML, an unknown key, a wrong type or a value out of range; names the key, the file and the line.
    """
    source = JobSource(path, text)
    return job_of(source, read_values(source, parse_toml(text, path)))


def parse_toml(text: str, path: str, what: str = "job file") -> dict[str, Any]:
    """Read a TOML document; a number of more digits than Python reads is none either.

    Raises:
        UsageError: it is none, or nests too deeply.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not a {what} in TOML: {error}") from None


def quoted(text: str) -> str:
    """Write a TOML basic string, which holds Unicode only.

    Raises:
        LunscopeError: the text has bytes that are no UTF-8.
    """
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise LunscopeError(f"{text!a}: a job file cannot hold a name that is not UTF-8: rename it or use a link")
    escaped = "".join(
        "\\" + letter if letter in '"\\' else letter if letter.isprintable() else f"\\U{ord(letter):08x}"
        for letter in text
    )
    return f'"{escaped}"'


def dump_job(job: JobSpec) -> str:
    """Write a job as a job file that `parse_job` reads back as the same job."""
    knobs = job.knobs
    lines = {
        "name": quoted(job.name),
        "target": "[" + ", ".join(quoted(format_target(spec)) for spec in job.targets) + "]",
        "rw": quoted(rw_word(job.access, knobs.read_pct)),
        "read_pct": format_number(knobs.read_pct),
        "bs": quoted(format_blocks(knobs.blocks)),
        "write_bs": None if knobs.write_blocks is None else quoted(format_blocks(knobs.write_blocks)),
        "distribution": quoted(format_distribution(knobs.distribution)),
        "write_distribution": (
            None if knobs.write_distribution is None else quoted(format_distribution(knobs.write_distribution))
        ),
        "qd": str(knobs.queue_depth),
        "qd_total": "true" if job.total_queue_depth else None,
        "rate": None if knobs.rate_iops is None else format_number(knobs.rate_iops),
        "stripe_width": str(knobs.stripe_width),
        "mirror": None if job.copies == 1 else str(job.copies),
        "policy": quoted(knobs.policy),
        "streams": str(job.streams),
        "stripe_unit": quoted(format_size(job.stripe_unit_bytes)),
        "threads": str(knobs.threads),
        "mode": quoted(knobs.mode),
        "fsync_every": None if knobs.fsync_every is None else str(knobs.fsync_every),
        "engine": quoted(job.backend),
        "size": None if job.size_bytes is None else quoted(format_size(job.size_bytes)),
        "runtime": None if job.runtime_s is None else quoted(format_duration(job.runtime_s)),
        "give_up": None if job.give_up_s == DEFAULT_GIVE_UP_S else quoted(format_duration(job.give_up_s)),
        "seed": str(job.seed),
        "arrival": quoted(job.arrival),
        "poll": "true" if job.poll else "false",
        "verify": "true" if job.verify else None,
    }
    return "".join(f"{key} = {value}\n" for key, value in lines.items() if value is not None)
