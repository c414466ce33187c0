"""Whether the hints of a first start are shown, and the file that says that they were dismissed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


class Hints:
    """Hints are wanted until they are dismissed once, on this host or by the setting."""

    def __init__(self, dismissed: Path | None = None) -> None:
        """Name the file that is there once hints were dismissed; None for no hints at all."""
        self._file = dismissed
        self._wanted = dismissed is not None and not dismissed.exists()

    @property
    def wanted(self) -> bool:
        """Whether to show them."""
        return self._wanted

    def dismiss(self) -> None:
        """Show them no more; where the file cannot be made, only until the end of the process."""
        self._wanted = False
        if self._file is not None:
            with suppress(OSError):
                self._file.parent.mkdir(parents=True, exist_ok=True)
                self._file.touch()
