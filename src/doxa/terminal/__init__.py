"""TERMINAL: what a run shows while it goes, and how it hears Ctrl-C."""
