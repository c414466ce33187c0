"""Options of the command line, and what they make."""
