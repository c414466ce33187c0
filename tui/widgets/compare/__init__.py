"""Widgets of the Compare screen."""
