"""Verified loads: what they found damaged, the journals they leave, and the pass that checks a target afterwards.

What lies on the target and how it is judged is in engine/native/src/load/verify.
"""

from __future__ import annotations
