"""Datasets of any size with the shape of the real files, odd rows included.

Invariant: the same seed and size give the same bytes on every machine and every version of Python and numpy.
"""
