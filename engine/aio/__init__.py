"""The asyncio backend: the load engine in plain Python, slow and readable, for any platform."""

from engine.aio.engine import AioEngine
from engine.aio.files import AioTarget

__all__ = ["AioEngine", "AioTarget"]
