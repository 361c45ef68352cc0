"""Benchmarks: one file a question, each answer measured in one run. `doxa bench` asks them."""
