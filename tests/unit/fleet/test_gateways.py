"""Hosts behind a gateway that fails are connected again through another one; what hosts refuse moves nobody."""

from __future__ import annotations

import pytest

from collectors.fleet.controller import FleetController, FleetSettings
from collectors.fleet.fleet_host import HostState
from collectors.fleet.fleet_load import FleetLoad
from collectors.fleet.gateways import MOST_LOSSES, Gateways, words_of_gateway
from collectors.fleet.hosts_text import odd_hosts
from tests.unit.fleet.made_hosts import NoLinks, clock, greet

CLOSED = b"Connection closed by UNKNOWN port 65535"
REFUSED = b"ssh: connect to host g1 port 22: Connection refused"
DENIED = b"root@n1: Permission denied (publickey)."
UNREACHABLE = b"channel 0: open failed: connect failed: No route to host"
FORBIDDEN = b"channel 0: open failed: administratively prohibited: open failed"
LATE = b"Connection timed out during banner exchange"


class Links(NoLinks):
    """Connections that are only noted, with the gateway each was begun through."""

    def __init__(self, gateways: Gateways) -> None:
        self._gateways = gateways
        self.begun: list[tuple[str, str]] = []

    def connect(self, host: str, command: str) -> None:  # noqa: ARG002 - as Links
        self.begun.append((host, self._gateways.of_host.get(host, "")))


def fleet_behind(of_host: dict[str, str], *more: str) -> tuple[FleetController, Links]:
    gateways = Gateways(of_host, more)
    links = Links(gateways)
    fleet = FleetController(tuple(of_host), links, FleetSettings(), of_host.__getitem__, gateways)
    fleet.tick()
    return fleet, links


def say(fleet: FleetController, host: str, *words: bytes, code: int = 255) -> None:
    for each in words:
        fleet.words(host, each)
    fleet.ended(host, code)


@pytest.mark.parametrize(
    ("words", "is_of_gateway"),
    [
        ((REFUSED, CLOSED), True),
        ((FORBIDDEN, b"stdio forwarding failed", CLOSED), True),
        ((UNREACHABLE, b"stdio forwarding failed", CLOSED), False),
        ((b"root@g1: Permission denied (publickey).", CLOSED), True),
        ((DENIED,), False),
        ((CLOSED,), False),
    ],
)
def test_whose_words_they_are(words: tuple[bytes, ...], is_of_gateway: bool) -> None:
    assert bool(words_of_gateway([line.decode() for line in words])) == is_of_gateway


def test_all_hosts_of_a_gateway_that_refuses_move_and_say_so() -> None:
    names = [f"n{number}" for number in range(12)]
    fleet, links = fleet_behind(dict.fromkeys(names, "g1"), "g2", "g3")
    say(fleet, "n0", REFUSED, CLOSED)
    assert fleet.hosts["n0"].reason == REFUSED.decode()
    for _ in range(6):
        fleet.tick()
    # Those that were under way stay until they end; those that waited have moved to both others.
    assert {gateway for _, gateway in links.begun[8:]} == {"g2", "g3"}
    assert {name for name, _ in links.begun[8:]} == {"n0", *names[8:]}
    greet(fleet, "n0")
    assert fleet.hosts["n0"].state is HostState.LIVE
    assert odd_hosts(fleet.hosts)["n0"] == f"live: through g2, not g1: {REFUSED.decode()}"


@pytest.mark.parametrize("words", [(DENIED,), (UNREACHABLE, CLOSED)])
def test_what_the_host_refuses_is_final(words: tuple[bytes, ...]) -> None:
    fleet, links = fleet_behind({"n1": "g1", "n2": "g1"}, "g2")
    say(fleet, "n1", *words)
    fleet.tick()
    assert len(links.begun) == 2
    assert fleet.hosts["n1"].state is HostState.FAILED
    assert fleet.hosts["n1"].reason == words[0].decode()


def test_losses_without_a_cause_count_for_the_gateway_when_there_are_several() -> None:
    names = [f"n{number}" for number in range(MOST_LOSSES + 9)]
    fleet, links = fleet_behind(dict.fromkeys(names, "g1"), "g2")
    for number in range(MOST_LOSSES):
        assert all(gateway == "g1" for _, gateway in links.begun)
        say(fleet, names[number], LATE)
    for _ in range(6):
        fleet.tick()
    assert {name for name, gateway in links.begun if gateway == "g2"} >= {*names[:MOST_LOSSES], names[-1]}


def test_a_connection_that_is_lost_is_made_again_once_per_gateway_and_has_no_load() -> None:
    fleet, links = fleet_behind({"n1": "g1", "n2": "g2"})
    for name in fleet.hosts:
        greet(fleet, name)
        clock(fleet, name)
    load = FleetLoad(fleet, {}, lambda _: False, 1.0)
    load._jobs, load._connections = dict.fromkeys(fleet.hosts), {"n1": 1, "n2": 1}  # type: ignore[assignment] # names
    say(fleet, "n1", b"Timeout, server n1 not responding.")
    assert fleet.hosts["n1"].state == "waiting"
    fleet.tick()
    assert links.begun[-1] == ("n1", "g2")
    greet(fleet, "n1")
    assert not load.is_over()
    assert "through g2, not g1: Timeout, server n1 not responding." in load.missing["n1"]
    assert "n2" not in load.missing
    say(fleet, "n1", b"Timeout, server n1 not responding.")
    assert fleet.hosts["n1"].state == "lost"
    assert "; through g2, not g1: " in fleet.hosts["n1"].reason


def test_with_all_gateways_gone_those_that_wait_fail_in_the_words_of_theirs() -> None:
    names = [f"n{number}" for number in range(10)]
    fleet, links = fleet_behind(dict.fromkeys(names, "g1"))
    say(fleet, "n0", REFUSED, CLOSED)
    assert fleet.hosts["n0"].state is HostState.FAILED
    assert fleet.hosts["n9"].reason == f"g1: {REFUSED.decode()}"
    assert len(links.begun) == 8
