"""FORMATS: the files that data sets are published in."""
