"""Guests that tests share: the scripts of all tests that are run for one guest run in it, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.lab.guest import KERNELS, Ended, run_one_by_one

_GUESTS = pytest.StashKey[dict["_Guest", dict[str, Ended]]]()


@dataclass(frozen=True)
class _Guest:
    topology: str
    options: tuple[str, ...]


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest) -> str:
    """Kernel of the lab that the test is about."""
    return str(request.param)


@pytest.fixture
def printed(request: pytest.FixtureRequest) -> str:
    """What the script of the test's mark `guest` printed."""
    guest, script = _wanted(request.node)
    ran = request.session.stash.setdefault(_GUESTS, {})
    if guest not in ran:
        marked = (item for item in request.session.items if item.get_closest_marker("guest"))
        scripts = [other for mine, other in map(_wanted, marked) if mine == guest]
        ran[guest] = run_one_by_one(guest.topology, list(dict.fromkeys(scripts)), *guest.options)
    ended = ran[guest][script]
    assert ended.status == 0, ended.printed[-2000:] + ended.errors[-4000:]
    return ended.printed


def _wanted(item: pytest.Item) -> tuple[_Guest, str]:
    marker = item.get_closest_marker("guest")
    assert marker is not None
    topology, script, *options = marker.args
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    more = ("--kernel", parameters["kernel"]) if "kernel" in parameters else ()
    return _Guest(topology, (*more, *options)), script
