"""The Sweep screen, with a body for each kind of measurement."""
