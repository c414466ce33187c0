"""The job of each host: targets and permissions that name the hosts they are of, as `node[1-4]:/dev/sdb`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from engine.errors import UsageError
from engine.job.spec import JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.text import safe_text

Expand = Callable[[str, str], Sequence[str]]
"""Names of the hosts of a node set that an option or file gives, which errors name; UsageError where it is none."""


class HostJob(Struct, frozen=True):
    """What one host drives."""

    job: JobSpec
    allow_write: tuple[str, ...]

    def turned(self, change: Callable[[Knobs], Knobs]) -> HostJob:
        """Change the knobs; stripes are at most as wide as it has targets."""
        knobs = change(self.job.knobs)
        knobs = replace(knobs, stripe_width=min(knobs.stripe_width, len(self.job.targets)))
        return replace(self, job=replace(self.job, knobs=knobs))

    def unwritable(self, knobs: Knobs) -> str:
        """Path that these knobs would write to without permission; empty where there is none."""
        nodes = () if knobs.read_pct >= 100 else (node for target in self.job.targets for node in target.nodes)
        return next((node for node in nodes if node not in self.allow_write), "")


def host_jobs(
    job: JobSpec, allow_write: Iterable[str], hosts: Sequence[str], expand: Expand, expand_target: Expand | None = None
) -> dict[str, HostJob]:
    """Make the job of each host; a target without hosts is one of all.

    Args:
        job: the job of all.
        allow_write: what may be written, as HOSTS:PATH.
        hosts: all hosts.
        expand: finds the hosts of a permission.
        expand_target: those of a target, which may be somebody else's text; by default as of a permission.

    Raises:
        UsageError: a host has no target, one is unknown, or a permission names no host.
    """
    allowed = _permissions(allow_write, hosts, expand)
    targets: dict[str, list[TargetSpec]] = {host: [] for host in hosts}
    for target in job.targets:
        for host, spec in _of_hosts(target, hosts, expand_target or expand):
            targets[host].append(spec)
    idle = next((host for host in hosts if not targets[host]), None)
    if idle is not None:
        raise UsageError(f"--target: none for host {safe_text(idle)}: give PATH for all hosts, or HOSTS:PATH")
    width = job.knobs.stripe_width
    return {
        host: HostJob(
            replace(
                job,
                targets=tuple(targets[host]),
                knobs=replace(job.knobs, stripe_width=min(width, len(targets[host]))),
            ),
            tuple(allowed[host]),
        )
        for host in hosts
    }


def _of_hosts(target: TargetSpec, hosts: Sequence[str], expand: Expand) -> Iterable[tuple[str, TargetSpec]]:
    named = None if target.path is None or target.paths else _split(target.path)
    if named is None:
        return [(host, target) for host in hosts]
    nodes, path = named
    return [(host, TargetSpec(path)) for host in _known(nodes, hosts, expand, "--target")]


def _permissions(allow_write: Iterable[str], hosts: Sequence[str], expand: Expand) -> Mapping[str, list[str]]:
    allowed: dict[str, list[str]] = {host: [] for host in hosts}
    for given in allow_write:
        named = _split(given)
        if named is None:
            raise UsageError(
                f"--allow-write {safe_text(given)}: name the hosts, too: --allow-write HOSTS:{safe_text(given)}"
            )
        for host in _known(named[0], hosts, expand, "--allow-write"):
            allowed[host].append(named[1])
    return allowed


def _split(text: str) -> tuple[str, str] | None:
    """Cut `HOSTS:/PATH`; None for a path alone."""
    nodes, colon, path = text.partition(":/")
    return (nodes, f"/{path}") if colon and nodes and "/" not in nodes else None


def _known(nodes: str, hosts: Sequence[str], expand: Expand, option: str) -> Sequence[str]:
    found = expand(nodes, option)
    known = frozenset(hosts)
    unknown = next((host for host in found if host not in known), None)
    if unknown is not None:
        raise UsageError(f"{option}: {safe_text(unknown)} is not one of --hosts")
    return found
