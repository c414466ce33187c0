"""Verified loads: what they found damaged, the journals they leave, and the pass that checks a target afterwards.

The format on the target and the checks are in engine/native/src/load/verify.
"""

from __future__ import annotations
