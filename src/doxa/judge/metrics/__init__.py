"""METRICS: scores of predictions, each with what it takes and what it refuses."""
