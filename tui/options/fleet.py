"""Options of `lunscope fleet`: which hosts, how they are reached, and what runs there."""

from __future__ import annotations

import functools
import itertools
import resource
import shlex
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import click
from msgspec import Struct

from collectors.fleet.controller import DEFAULT_COMMAND, FleetController, FleetSettings
from collectors.fleet.fleet_load import DEFAULT_WINDOW_S
from collectors.fleet.fleet_source import FleetSource
from collectors.fleet.gateways import Gateways
from collectors.fleet.lease import RENEW_S
from collectors.fleet.links import ClusterShellLinks
from collectors.fleet.node_sets import expand
from collectors.fleet.pushed_agent import PushedAgent, pushed_agent
from collectors.session.writer import SessionWriter
from collectors.sources.recorder import RecordingSource
from engine.errors import UsageError
from engine.job.sizes import parse_duration

_Command = TypeVar("_Command", bound=Callable[..., Any])
_GATEWAY_S = 10.0
_ASKED_AT_ONCE = 8

_OPTIONS = (
    click.option("--hosts", default="", metavar="NODESET", help="Hosts: node[1-20],db3, or @group of ClusterShell."),
    click.option("--group", metavar="G", help="Only the hosts of this group of ClusterShell; alone: all of them."),
    click.option(
        "--ssh",
        default="ssh",
        show_default=True,
        metavar="COMMAND",
        help="The ssh to use, with options: 'ssh -F FILE'.",
    ),
    click.option(
        "--gateway",
        default="",
        metavar="NODESET",
        help="Reach the hosts through these, shared out evenly (ssh -J); without it as ~/.ssh/config says (ProxyJump).",
    ),
    click.option(
        "--agent",
        default=DEFAULT_COMMAND,
        show_default=True,
        metavar="COMMAND",
        help="What to run on each host: 'sudo -n lunscope agent --stdio' for exact time.",
    ),
    click.option(
        "--push", is_flag=True, help="Copy this lunscope to each host for as long as it is used, for hosts without it."
    ),
    click.option(
        "--python",
        default="python3",
        show_default=True,
        metavar="COMMAND",
        help="What runs the copy of --push: 'sudo -n python3' for exact time.",
    ),
    click.option("--local", is_flag=True, hidden=True),
    click.option(
        "--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Record the whole fleet."
    ),
    click.option("--overwrite", is_flag=True, help="Replace the file that --record names if it is a session."),
)


_DRIVING = (
    click.option(
        "--window",
        default=f"{DEFAULT_WINDOW_S * 1000:g}ms",
        show_default=True,
        metavar="TIME",
        help="Within this time of each other all hosts start and turn; refused where clocks are not known so well.",
    ),
    click.option("--partial", is_flag=True, help="Go on without hosts that do not answer at the beginning."),
    click.option("--json", "as_json", is_flag=True, help="No screen; one JSON document (docs/fleet.md) at the end."),
)


class DrivingOptions(Struct, frozen=True):
    """How a load over all hosts is driven, and how its result is printed."""

    window_s: float
    partial: bool
    """Whether to go on without hosts that do not answer at the beginning."""
    as_json: bool


class FleetOptions(Struct, frozen=True):
    """Hosts and how they are reached."""

    names: tuple[str, ...]
    ssh: str
    agent: str
    local: bool
    record: Path | None
    overwrite: bool
    pushed: PushedAgent | None
    """What is copied to each host; None where it is installed there."""
    gateways: tuple[str, ...] = ()
    """Through which the hosts are reached; none: as ssh itself does."""


def fleet_options(command: _Command) -> _Command:
    """Add the options; the command gets a FleetOptions as `fleet`."""

    @functools.wraps(command)
    def wrapped(
        *args: object,
        hosts: str,
        group: str | None,
        ssh: str,
        gateway: str,
        agent: str,
        push: bool,
        python: str,
        local: bool,
        record: Path | None,
        overwrite: bool,
        **others: object,
    ) -> object:
        if not hosts and not group:
            raise UsageError("--hosts: give the hosts: --hosts node[1-20],db3, or --group NAME")
        _require_ssh(ssh)
        names = expand(hosts, group)
        gateways = expand(gateway, None, "--gateway") if gateway else ()
        pushed = _pushed(agent, python, push=push)
        fleet = FleetOptions(names, ssh, agent, local, record, overwrite, pushed, gateways)
        return command(*args, fleet=fleet, **others)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value] # click's options change the signature


def driving_options(command: _Command) -> _Command:
    """Add what every verb that drives a load over hosts has; the command gets a DrivingOptions as `driving`."""

    @functools.wraps(command)
    def wrapped(*args: object, window: str, partial: bool, as_json: bool, **others: object) -> object:
        return command(*args, driving=DrivingOptions(parse_duration(window), partial, as_json), **others)

    for option in reversed(_DRIVING):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value] # as above


def _pushed(agent: str, python: str, *, push: bool) -> PushedAgent | None:
    if push and agent != DEFAULT_COMMAND:
        raise UsageError("--push: runs the copy, --agent what is installed: leave one out; --python names its Python")
    return pushed_agent(python) if push else None


def _require_ssh(ssh: str) -> None:
    try:
        words = shlex.split(ssh)
    except ValueError as error:
        raise UsageError(f"--ssh: {ssh!r}: {error}") from None
    if not words:
        raise UsageError("--ssh: give a command, such as ssh")


def open_fleet(options: FleetOptions, *, runs: bool) -> tuple[FleetSource, RecordingSource | None]:
    """Make the source of a fleet, and its recording if one is asked for; nothing is connected yet.

    Raises:
        LunscopeError: ClusterShell is missing, or the session file cannot be created.
    """
    raise_descriptor_limit()
    through = Gateways(shared_out(options.names, options.gateways), options.gateways)
    links = ClusterShellLinks(options.ssh, local=options.local, gateways=through.of_host)
    pushed = options.pushed or PushedAgent(options.agent, b"")
    settings = FleetSettings(pushed.command, RENEW_S if runs else 1.0, record_there=runs, payload=pushed.payload)
    paced = through.of_host if options.local or options.gateways else gateways_of(options.names, options.ssh)
    controller = FleetController(options.names, links, settings, lambda name: paced.get(name, ""), through)
    source = FleetSource(controller)
    if options.record is None:
        return source, None
    return source, RecordingSource(source, SessionWriter(options.record, overwrite=options.overwrite))


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard one: each connection takes three descriptors."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def shared_out(names: tuple[str, ...], gateways: tuple[str, ...]) -> Mapping[str, str]:
    """Give each host its gateway, in turn; a gateway itself is reached without one."""
    behind = [name for name in names if name not in gateways]
    return dict(zip(behind, itertools.cycle(gateways), strict=False))


def gateways_of(names: tuple[str, ...], ssh: str) -> Mapping[str, str]:
    """Ask ssh which host each is reached through (ssh -G): the jump host, else the address and port itself."""
    words = shlex.split(ssh)
    with ThreadPoolExecutor(_ASKED_AT_ONCE, "lunscope-gateways") as pool:
        gateways = pool.map(lambda name: _gateway_of(name, words), names)
        return {name: gateway for name, gateway in zip(names, gateways, strict=True) if gateway}


def _gateway_of(name: str, ssh: list[str]) -> str:
    """Return the gateway of one host; empty where ssh does not say."""
    try:
        lines = subprocess.run(
            [*ssh, "-G", name], capture_output=True, text=True, timeout=_GATEWAY_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    facts = dict(line.split(" ", 1) for line in lines.splitlines() if " " in line)
    jump = facts.get("proxyjump") or facts.get("proxycommand")
    return jump or f"{facts.get('hostname', name)}:{facts.get('port', '')}"
