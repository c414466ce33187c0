"""Layers not built on any known LUN: on missing devices, or in a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from collectors.graph import Graph, Layer


def layers_above(graph: Graph) -> Mapping[str, Sequence[Layer]]:
    """Layers built directly on each device, by its key."""
    above: dict[str, list[Layer]] = {}
    for layer in graph.layers:
        for below in layer.below:
            above.setdefault(below, []).append(layer)
    return above


def rootless_layers(graph: Graph) -> Iterator[Layer]:
    """Yield the layers to start from to reach all layers that cannot be reached from a LUN."""
    above = layers_above(graph)
    reached = _reached(above, (lun.key for lun in graph.luns))
    known = {layer.key for layer in graph.layers}
    bottom_first = sorted(graph.layers, key=lambda layer: bool(known.intersection(layer.below) - {layer.key}))
    for layer in bottom_first:
        if layer.key not in reached:
            yield layer
            reached |= _reached(above, (layer.key,))


def _reached(above: Mapping[str, Sequence[Layer]], start: Iterable[str]) -> set[str]:
    """Keys of devices and of all layers built on them."""
    waiting = list(start)
    reached = set(waiting)
    while waiting:
        fresh = [layer.key for layer in above.get(waiting.pop(), ()) if layer.key not in reached]
        reached.update(fresh)
        waiting += fresh
    return reached
