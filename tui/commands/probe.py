"""`lunscope probe`: exact time for users who may not trace, by a privileged helper."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from collectors.exact.probe.connection import Admission
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import DEFAULT_PATH, PATH_VARIABLE
from collectors.exact.probe.server import ProbeServer, QuietLog
from collectors.exact.tracer_supervisor import NFS_CALLS, THROTTLE
from engine import _native
from engine.errors import LunscopeError
from engine.text import safe_text
from tui.headless.signals import stop_on_signal
from tui.options.reading import btf_option, root_options


@click.command(short_help="exact time for users who may not trace: the privileged helper")
@click.option(
    "--socket",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_PATH,
    show_default=True,
    help=f"Socket path; readers use it, or ${PATH_VARIABLE}.",
)
@click.option(
    "--user", "users", multiple=True, metavar="NAME", help="Allow this user to read; repeat for more. [sudo's caller]"
)
@click.option("--group", metavar="NAME", help="Allow the members of this group to read.")
@btf_option
@root_options
def command(*, path: Path, users: tuple[str, ...], group: str | None, procfs: Path, sysfs: Path) -> None:
    """Trace block I/O for unprivileged lunscope processes on this host.

    Run it as root, by sudo or by systemd. It attaches when the first reader connects, detaches when the last one
    disconnects, and provides counters only. Root, the named users and the members of the group may connect: they see
    process names and the sectors that these read and write. Ends at SIGINT and SIGTERM.
    """
    if refusal := _native.tracer_refusal(str(procfs), str(sysfs)):
        raise LunscopeError(f"probe: {refusal}")
    admission = Admission.of(users, group)
    stop = threading.Event()
    # From before the socket exists: who sees it may end the helper, and that must remove it.
    with stop_on_signal(stop):
        server = ProbeServer(path, admission, _hub(str(sysfs)), QuietLog(_log))
        try:
            _log(f"listening at {path}")
            server.serve(stop)
        finally:
            server.close()


def _hub(sysfs: str) -> Hub:
    return Hub(
        lambda: _native.BlockTracer(sysfs),
        lambda: THROTTLE.own(sysfs),
        lambda: NFS_CALLS.own(sysfs),
    )


def _log(text: str) -> None:
    click.echo(f"lunscope probe: {safe_text(text)}", err=True)
