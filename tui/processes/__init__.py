"""Which processes do I/O on what is selected, as data and text."""
