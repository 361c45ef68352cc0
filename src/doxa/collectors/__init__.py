"""COLLECTOR: what is kept of the way that parameters go. To add one: a file here and a line in TABLE."""
