"""STORAGE: files whole or not at all: sealed tensors, and rows that are only ever appended."""
