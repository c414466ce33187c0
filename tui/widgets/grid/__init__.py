"""The table of all screens: rows, order, cursor, and their lines."""
