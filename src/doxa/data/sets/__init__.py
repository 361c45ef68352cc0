"""SETS: a file for each data set, with its card and its loader."""
