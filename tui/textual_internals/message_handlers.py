"""Which methods of a class handle a message: searched once, and not for each message in all base classes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Any

from textual.message import Message
from textual.message_pump import MessagePump

_Handler = Callable[[Message], Awaitable[Any]]
_Handlers = tuple[tuple[type, Any], ...]
"""Base classes with a method each, in the order of the calls."""

_searched = MessagePump._get_dispatch_methods


@cache
def _by_name(cls: type, method_name: str, message_class: type) -> _Handlers | None:
    """Find the methods that handle a message by their names; None if some do so by a decorator.

    Those ask which widget has sent the message (textual/message_pump.py, MessagePump._get_dispatch_methods).
    """
    kinds = [kind for kind in message_class.__mro__ if issubclass(kind, Message)]
    found = []
    for base in cls.__mro__:
        own = vars(base)
        decorated = own.get("_decorated_handlers")
        if decorated and any(kind in decorated for kind in kinds):
            return None
        method = own.get(f"_{method_name}") or own.get(method_name)
        if method is not None and not getattr(method, "_textual_on", None):
            found.append((base, method))
    return tuple(found)


def _bound(pump: MessagePump, handlers: _Handlers, message: Message) -> Iterator[tuple[type, _Handler]]:
    for base, method in handlers:
        if message._no_default_action:  # A handler before this one has said so.
            return
        yield base, method.__get__(pump, base)


def handlers_of(pump: MessagePump, method_name: str, message: Message) -> Iterable[tuple[type, _Handler]]:
    """Return the classes with the methods that handle a message, as Textual's own search does."""
    kind: type = type(message)
    handlers = _by_name(type(pump), method_name, kind)
    return _searched(pump, method_name, message) if handlers is None else _bound(pump, handlers, message)


def search_handlers_once() -> None:
    """Make Textual look handlers up: its search is a twentieth of what a key or the start of an app costs."""
    MessagePump._get_dispatch_methods = handlers_of  # type: ignore[method-assign, assignment]
