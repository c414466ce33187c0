"""The metrics of a load, written to a file with every sample that anything else takes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from collectors.model import Source, Step
from engine.errors import LunscopeError
from engine.job.knobs import Knobs
from tui.options.session import METRICS_FILE
from tui.process.standard_streams import say


def require_metrics_file(path: Path | None) -> None:
    """Make sure before anything begins that the file may be replaced, if there is one.

    Raises:
        LunscopeError: it may not be.
    """
    if path is not None:
        from tui.headless.metrics import require_textfile  # noqa: PLC0415 (few runs need it)

        require_textfile(path, METRICS_FILE)


def metered(source: Source, path: Path | None, knobs: Callable[[], Knobs | None], *, on_screen: bool) -> Source:
    """Write the metrics of the load to a file with every sample of a source; without a file the source as it is.

    Raises:
        LunscopeError: the file cannot be written.
    """
    if path is None:
        return source
    from collectors.metrics.loads import LoadMetrics  # noqa: PLC0415 (few runs need it)
    from collectors.sources.recorder import ObservedSource  # noqa: PLC0415 - as above
    from tui.headless.metrics import TextfileWriter  # noqa: PLC0415 - as above

    metrics = LoadMetrics(knobs)
    # A line on stderr would be drawn over by the screens.
    writer = TextfileWriter(path, metrics.text, (lambda _line: None) if on_screen else say)
    writer.write()

    def observe(step: Step) -> None:
        metrics.add(step)
        writer.write()

    def end() -> None:
        metrics.end()
        with suppress(LunscopeError):
            writer.write()

    return ObservedSource(source, observe, end)
