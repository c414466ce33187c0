"""Session files: every sample of a recording in one SQLite file, written tick by tick and read at any point.

`writer` puts samples in, `reader` gets them out; `format` describes the file.
"""
