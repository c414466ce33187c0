"""The data of the path, tree and detail screens."""
