"""The device graph in recordings: of older and later versions, and damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from collectors.graph import Graph
from collectors.session import objects
from collectors.session.format import DamageError
from tests.session_samples import Machine


def test_a_recording_without_a_graph_reads_as_one_that_did_not_look() -> None:
    value = objects.topology_to_json(Machine().topology)
    del value["graph"]
    topology = objects.topology_from_json(value)
    assert topology.devices == Machine().topology.devices
    assert topology.graph.records == Graph().records


def test_a_graph_of_a_later_or_earlier_version_reads_as_far_as_it_is_known() -> None:
    value = objects.topology_to_json(Machine().topology)
    value["graph"]["paths"]["colour"] = ["red"] * 5
    del value["graph"]["paths"]["weight"]
    paths = objects.topology_from_json(value).graph.paths
    assert paths == Machine().topology.graph.paths


@pytest.mark.parametrize(
    "spoil",
    [
        lambda graph: graph.update(paths=7),
        lambda graph: graph.update(notices=[3]),
        lambda graph: graph["paths"].update(name=["only one"]),
        lambda graph: graph["ports"].update(queue_limit=["many", None]),
        lambda graph: graph["luns"].pop("key"),
    ],
)
def test_a_damaged_graph_is_refused(spoil: Callable[[dict[str, Any]], None]) -> None:
    value = objects.topology_to_json(Machine().topology)
    spoil(value["graph"])
    with pytest.raises(DamageError):
        objects.topology_from_json(value)
