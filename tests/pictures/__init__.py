"""Pictures of the screens for the README and the documents, made from recordings."""
