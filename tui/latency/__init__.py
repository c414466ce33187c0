"""Texts of the latency screen."""
