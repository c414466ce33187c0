"""Paths to LUNs: grouped, added up, compared with their peers, and described in words."""
