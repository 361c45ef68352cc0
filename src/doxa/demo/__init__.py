"""DEMO: what weight uncertainty is worth, on digits and on a curve, in a minute and without a network."""

from doxa.demo.run import COLUMNS, FILES, PAGE, SEEDS, run, table

__all__ = ["COLUMNS", "FILES", "PAGE", "SEEDS", "run", "table"]
