"""Nets found by values alone."""
