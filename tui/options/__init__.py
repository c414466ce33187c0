"""Options of the command line, and the values they build."""
