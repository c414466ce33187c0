"""Colour themes, glyph sets and the app that all screens and pictures start from."""
