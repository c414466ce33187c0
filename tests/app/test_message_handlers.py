"""Handlers of messages are those that Textual's own search finds."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.message_pump import MessagePump

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tui.textual_internals.message_handlers import _searched, handlers_of
from tui.widgets.grid.table import Grid


def found_by(search: object, pump: MessagePump, message: Message) -> list[tuple[type, object]]:
    return [(base, method) for base, method in search(pump, message.handler_name, message)]  # type: ignore[operator]


async def test_all_widgets_handle_messages_as_textual_has_them_do() -> None:
    source = ListSource(make_samples(count=3))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        grid = pilot.app.screen.query_one("#disks", Grid)
        await pilot.press("question_mark")
        pumps = [pilot.app, *pilot.app._registry]
        messages = [
            events.Idle(),
            events.Mount(),
            events.Key("down", None),
            events.Blur(),
            Grid.RowHighlighted(grid, "sda"),
        ]
        messages[-1]._sender = grid
        several = by_decorator = 0
        for pump in pumps:
            for message in messages:
                found = found_by(_searched, pump, message)
                assert found_by(handlers_of, pump, message) == found
                several += len(found) > 1
                by_decorator += any(getattr(method, "_textual_on", False) for _, method in found)
        assert several
        assert by_decorator


async def test_a_handler_that_prevents_the_default_is_the_last() -> None:
    source = ListSource(make_samples(count=2))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 1)
        pump = next(each for each in pilot.app._registry if len(found_by(_searched, each, events.Mount())) > 1)
        for search in (_searched, handlers_of):
            message = events.Mount()
            handlers = iter(search(pump, message.handler_name, message))
            next(handlers)
            message.prevent_default()
            assert list(handlers) == []
