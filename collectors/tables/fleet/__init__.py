"""Hosts of a fleet."""
