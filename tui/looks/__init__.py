"""Themes, marks and what the operator set."""
