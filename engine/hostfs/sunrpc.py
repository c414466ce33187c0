"""Transports of RPC clients in /sys/kernel/sunrpc: names of folders, words of their files (net/sunrpc/sysfs.c)."""

from __future__ import annotations

import re

SWITCHES = "kernel/sunrpc/xprt-switches"
"""Folder below /sys since Linux 5.14: it has a folder for each switch, and that one for each transport."""
SWITCH = re.compile(r"switch-\d+")
TRANSPORT = re.compile(r"xprt-(\d+)-(tcp|udp|rdma|local)")
"""Number that tracepoints name it by, and kind."""
OFFLINE, REMOVED, CONNECTED = "OFFLINE", "REMOVE", "CONNECTED"
"""Words of `xprt_state`."""


def transport_info(text: str) -> dict[str, str]:
    """Parse `xprt_info`: lines of name=value."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {name: value for name, sign, value in pairs if sign}


def is_main(info: dict[str, str]) -> bool:
    """Whether it is the first one of its switch, which the kernel keeps online."""
    return info.get("main_xprt") == "1"


def is_callback(info: dict[str, str]) -> bool:
    """Whether it is of the callbacks of a server, which have no remote port."""
    return info.get("dst_port") == "0"
