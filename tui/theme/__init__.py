"""Colour themes, settings and the base class of all apps."""
