"""Frames for people and other programs: reports like sar, JSON, exports, scenarios."""
