"""Reports as one self-contained file, HTML or Markdown: of a recording, of the result of a run, of a sweep."""
