"""RUNS: from a table or a named data set to a folder that predicts, and back."""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa.runs.check import RunCheck, check_run, seal_run
from doxa.runs.folder import SavedRun, keep_result, open_run, read_run_result, read_spec
from doxa.runs.learn import learn
from doxa.runs.plan import Plan
from doxa.runs.predict import csv_lines, foreign_inputs, labelled_rows, predict_table, training_data_of, write_csv
from doxa.runs.prune import prune_run
from doxa.runs.training_data import TrainingData, load_training_data

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(
        __name__,
        {
            "Material": "TrainingData",
            "Opened": "SavedRun",
            "foreign": "foreign_inputs",
            "gathered": "load_training_data",
            "material_of": "training_data_of",
            "pairs": "labelled_rows",
            "result_of": "read_run_result",
        },
    )

__all__ = [
    "Plan",
    "RunCheck",
    "SavedRun",
    "TrainingData",
    "check_run",
    "csv_lines",
    "foreign_inputs",
    "keep_result",
    "labelled_rows",
    "learn",
    "load_training_data",
    "open_run",
    "predict_table",
    "prune_run",
    "read_run_result",
    "read_spec",
    "seal_run",
    "training_data_of",
    "write_csv",
]
