"""The asyncio backend: the load engine in plain Python, slow and readable, for any platform.

The loop is the smaller part. The rest is what results of every backend have, so that they are read alike: the figures
of each epoch, latencies by target, errors and targets that fail, stripes, and the refusal of knobs.
"""

from engine.aio.engine import AioEngine
from engine.aio.files import AioTarget

__all__ = ["AioEngine", "AioTarget"]
