"""Screens: they compose widgets and hand frames on."""
