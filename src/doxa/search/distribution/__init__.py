"""DISTRIBUTION: where a search looks, how it moves, and what it keeps of the last generation."""
