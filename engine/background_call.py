"""Calls that may never return, made in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")


class BackgroundCall(Generic[_Result]):
    """One call in a daemon thread, so that neither its caller nor the interpreter's exit depends on its return."""

    def __init__(self, call: Callable[[], _Result], name: str) -> None:
        """Begin at once.

        Raises:
            RuntimeError: there is no thread left.
        """
        self.done = threading.Event()
        self._outcome: list[_Result] = []
        self._error: BaseException | None = None
        threading.Thread(target=self._run, args=(call,), name=name, daemon=True).start()

    def result(self) -> _Result:
        """Return what the call returned, or raise what it raised; only once it is done."""
        if self._error is not None:
            raise self._error
        return self._outcome[0]

    def _run(self, call: Callable[[], _Result]) -> None:
        try:
            self._outcome.append(call())
        except BaseException as error:  # raised again where the result is read
            self._error = error
        finally:
            self.done.set()
