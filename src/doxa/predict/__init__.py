"""PREDICT: from a posterior, a net and rows to draws, and what they say."""
