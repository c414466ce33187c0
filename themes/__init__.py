"""Colour themes as TOML files and the base style sheet; data only."""
