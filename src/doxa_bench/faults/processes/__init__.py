"""Processes that do a job and may die of it, and what goes wrong meanwhile."""
