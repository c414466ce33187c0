"""Sweeps over the axes of published studies, a file each; `registry` lists them."""
