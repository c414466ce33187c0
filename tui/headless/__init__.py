"""Loads without a screen, and the signals that end them."""
