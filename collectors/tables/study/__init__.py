"""Points of studies: what was measured, as rows of figures."""
