"""Benchmarks: one file a question, each answer a ratio measured in one run. `doxa bench` asks them."""
