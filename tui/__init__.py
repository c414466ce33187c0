"""The command line and the terminal screens; the only package that imports textual."""
