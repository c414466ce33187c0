"""What the screens of paths, tree and devices show, apart from drawing it."""
