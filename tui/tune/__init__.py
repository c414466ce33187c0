"""Tunables on the screen: scopes at the cursor, rows, and what a change did."""
