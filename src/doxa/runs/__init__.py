"""RUNS: from a table or a named data set to a folder that predicts, and back."""

from doxa.runs.folder import SavedRun, open_run, read_run_result, read_spec
from doxa.runs.learn import learn
from doxa.runs.plan import Plan
from doxa.runs.predict import csv_lines, foreign_inputs, labelled_rows, predict_table, training_data_of, write_csv
from doxa.runs.prune import prune_run
from doxa.runs.training_data import TrainingData, load_training_data

__all__ = [
    "Plan",
    "SavedRun",
    "TrainingData",
    "csv_lines",
    "foreign_inputs",
    "labelled_rows",
    "learn",
    "load_training_data",
    "open_run",
    "predict_table",
    "prune_run",
    "read_run_result",
    "read_spec",
    "training_data_of",
    "write_csv",
]
