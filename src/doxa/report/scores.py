"""What is known of each score: its name for readers, which way is better, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from doxa.report.numbers import SPACE, format_with_error
from doxa.report.text import shorten


@dataclass(frozen=True)
class Score:
    """A column of the table. `distance_from_ideal` maps a value to how far it is from ideal; None where no direction is
    better."""

    title: str
    meaning: str
    distance_from_ideal: Callable[[float], float] | None = None
    percent: bool = False
    title_in_sentence: str = ""  # a sentence, where the title will not do

    @property
    def heading(self) -> str:
        """The title with its unit."""
        return _unbroken_percent(f"{self.title}, %" if self.percent else self.title)

    @property
    def phrase(self) -> str:
        """The score as sentences call it."""
        return _unbroken_percent(self.title_in_sentence or self.title)

    def format_value(self, value: float | None, error: float | None, unit: str = "") -> str:
        """A value of it with its error, in percent where that is its unit."""
        factor = 100.0 if self.percent else 1.0
        spread = None if error is None else factor * error
        return format_with_error(None if value is None else factor * value, spread, unit)


def _unbroken_percent(text: str) -> str:
    """The number and its % on one line."""
    return text.replace(" %", f"{SPACE}%")


def lower_is_better(value: float) -> float:
    """The lower the better."""
    return value


def higher_is_better(value: float) -> float:
    """The higher the better."""
    return -value


def nearer_is_better(ideal: float) -> Callable[[float], float]:
    """The nearer to an ideal the better."""
    return lambda value: abs(value - ideal)


# The first ones are the columns of the table, in this order; the others stand in the table of all scores.
SCORES = {
    "error": Score("Error", "share of rows whose likeliest class is wrong", lower_is_better, True, "error"),
    "rmse": Score("RMSE", "root of the mean squared error", lower_is_better),
    "nll": Score(
        "NLL", "negative log-probability of the truth, in nats a row: skill and honesty in one", lower_is_better
    ),
    "crps": Score("CRPS", "distance between the predicted distribution and what came", lower_is_better),
    "brier": Score(
        "Brier", "squared distance between probabilities and label", lower_is_better, title_in_sentence="Brier score"
    ),
    "ece": Score(
        "ECE", "how far confidence and accuracy are apart, on average", lower_is_better, True, "calibration (ECE)"
    ),
    "coverage_90": Score(
        "In 90 % intervals",
        "share of targets inside 90 % intervals; 90 is ideal",
        nearer_is_better(0.9),
        True,
        "coverage",
    ),
    "auroc_entropy": Score(
        "OOD AUROC",
        "chance that an unfamiliar input looks more doubtful than a familiar one",
        higher_is_better,
        title_in_sentence="spotting unfamiliar inputs",
    ),
    "error_pruned_95": Score(
        "Error, 95 % pruned",
        "error when only the most relevant 5 % of weights are left",
        lower_is_better,
        True,
        "error when 95 % pruned",
    ),
    "rmse_pruned_95": Score(
        "RMSE, 95 % pruned",
        "RMSE when only the most relevant 5 % of weights are left",
        lower_is_better,
        title_in_sentence="RMSE when 95 % pruned",
    ),
    "accuracy_attacked": Score(
        "FGSM accuracy",
        "accuracy on inputs changed to mislead it (FGSM)",
        higher_is_better,
        True,
        "accuracy under attack",
    ),
}
MAIN = tuple(SCORES)
SCORES |= {
    "lppd": Score("lppd", "log posterior predictive density: minus the NLL", higher_is_better),
    "gibbs_nll": Score("Gibbs NLL", "NLL of single draws instead of their average", lower_is_better),
    "ece_classwise": Score("ECE, class by class", "calibration error of every class score", lower_is_better, True),
    "ece_adaptive": Score("ECE, equal bins", "calibration error in bins of equally many rows", lower_is_better, True),
    "entropy": Score("Entropy", "mean doubt of the prediction, in nats"),
    "mutual_information": Score("Mutual information", "the part of the doubt that comes from the weights, in nats"),
    "auroc_mutual_information": Score("OOD AUROC by information", "the same by mutual information", higher_is_better),
    "fpr95_entropy": Score("OOD FPR95", "false alarms when 95 % of the unfamiliar are caught", lower_is_better, True),
    "fpr95_mutual_information": Score(
        "OOD FPR95 by information", "the same by mutual information", lower_is_better, True
    ),
    "aleatoric": Score("Noise", "mean standard deviation that more data would not remove"),
    "epistemic": Score("Doubt of the weights", "mean standard deviation that more data would remove"),
    "coverage_50": Score("In 50 % intervals", "share inside 50 % intervals; 50 is ideal", nearer_is_better(0.5), True),
    "coverage_95": Score("In 95 % intervals", "share inside 95 % intervals; 95 is ideal", nearer_is_better(0.95), True),
    "width_90": Score("Width of 90 % intervals", "mean width, in the target's unit"),
}


def find_score(name: str) -> Score:
    """The score of that name; one that nobody has heard of keeps its name and has no better or worse."""
    return SCORES.get(name) or Score(shorten(name), "")
