"""The app: it owns the current frame and is composed of parts, each with the actions of one subject."""
