"""The families as a collector of prometheus_client, for what its server does besides plain text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from collectors.metrics.registry import ALWAYS, LEVELS
from engine.extras import missing_extra

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


class _Families:
    """Implements the collector protocol of prometheus_client."""

    def __init__(self, text: Callable[[], bytes]) -> None:
        self._text = text

    def describe(self) -> Iterator[Metric]:
        """All families that there can be, so that `name[]` finds them."""
        from prometheus_client.metrics_core import Metric  # noqa: PLC0415 (an extra)

        for level in (*LEVELS, ALWAYS):
            for family in level.families:
                yield Metric(family.name.removesuffix("_total"), family.help, str(family.kind))

    def collect(self) -> Iterator[Metric]:
        """All families with their values."""
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415 (an extra)

        yield from text_string_to_metric_families(self._text().decode())


def make_registry(text: Callable[[], bytes]) -> CollectorRegistry:
    """Make a registry of prometheus_client over the exposition.

    Raises:
        LunscopeError: prometheus_client is not installed.
    """
    try:
        from prometheus_client import CollectorRegistry  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise missing_extra("--listen", "prometheus_client", "metrics", "use --textfile") from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(text))
    return registry
