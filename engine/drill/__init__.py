"""A drill: paths are taken offline on purpose and back, refused wherever a LUN would be left without a path."""
