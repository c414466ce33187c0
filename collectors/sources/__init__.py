"""Sources of samples: this host on schedule, or a recording; and recording to a file."""
