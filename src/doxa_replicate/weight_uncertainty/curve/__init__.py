"""Regression on a curve."""
