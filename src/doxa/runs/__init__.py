"""RUNS: from a table or a named data set to a folder that predicts, and back."""

from doxa.runs.folder import Opened, open_run, read_spec, result_of
from doxa.runs.learn import learn
from doxa.runs.material import Material, gathered
from doxa.runs.plan import Plan
from doxa.runs.prune import prune_run
from doxa.runs.use import csv_lines, foreign, material_of, pairs, predict_table, write_csv

__all__ = [
    "Material",
    "Opened",
    "Plan",
    "csv_lines",
    "foreign",
    "gathered",
    "learn",
    "material_of",
    "open_run",
    "pairs",
    "predict_table",
    "prune_run",
    "read_spec",
    "result_of",
    "write_csv",
]
