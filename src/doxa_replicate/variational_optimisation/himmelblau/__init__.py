"""Himmelblau's function, searched with a fixed scale, plain gradients and natural ones."""
