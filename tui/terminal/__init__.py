"""The terminal: opened anew for the screens, written without blocking, given back whatever happens."""
