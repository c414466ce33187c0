"""The screens of paths: their list, their tree, and the sheet of a LUN, path or port."""
