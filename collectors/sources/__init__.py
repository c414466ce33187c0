"""Where samples come from: this host on schedule, or a recording; and the file they go to."""
