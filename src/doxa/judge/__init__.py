"""JUDGE: what a belief is worth. To add a metric: a file in `metrics/` and a line in TABLE, under what it takes."""

from typing import TYPE_CHECKING

from doxa.judge import attacks
from doxa.judge.against import against
from doxa.judge.evidence import evidence
from doxa.judge.free_energy import FreeEnergy, elbo, free_energy
from doxa.judge.judgement import Judgement
from doxa.judge.metrics.calibration import (
    Reliability,
    ece,
    ece_adaptive,
    ece_classwise,
    reliability,
    reliability_all_classes,
)
from doxa.judge.metrics.crps import crps_gaussian_mixture
from doxa.judge.metrics.predictive_density import gibbs_nll, lppd, lppd_bias, lppd_error
from doxa.judge.metrics.regression import coverage, rmse, width
from doxa.judge.metrics.scores import brier, error, nll
from doxa.judge.metrics.shift import auroc, fpr95
from doxa.judge.metrics.wasserstein import wasserstein_2
from doxa.judge.pruning import pruned_shares, pruning_curve, signal_to_noise_histogram, signal_to_noise_quantiles
from doxa.judge.robustness import robustness
from doxa.judge.verdict import judge
from doxa.moved.names import renamed

TABLE = {
    # (p [B, C], y [B]): the smaller the better, 0 at best
    "classification": {
        "error": error,
        "brier": brier,
        "nll": nll,
        "ece": ece,
        "ece_classwise": ece_classwise,
        "ece_adaptive": ece_adaptive,
    },
    # (log_p [S, B])
    "density": {"lppd": lppd, "gibbs_nll": gibbs_nll},
    # (location [S, B, ·], scale, y [B, ·]): an Estimate; the smaller the better
    "mixture": {"crps_gaussian_mixture": crps_gaussian_mixture},
    # (mean [B, ·], y [B, ·]): the smaller the better, 0 at best
    "point": {"rmse": rmse},
    # (y, lower, upper), all [B, ·]: the share inside, 1 where all are and 0 where none is
    "interval": {"coverage": coverage},
    # (inside [B], outside [B']), scores that should be higher outside
    "shift": {"auroc": auroc, "fpr95": fpr95},
    # (values [S, ...], others [S', ...]), draws of two distributions at each point: [...], 0 where they are one
    "distance": {"wasserstein_2": wasserstein_2},
}

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"bandits": "doxa.bandits"})

__all__ = [
    "TABLE",
    "FreeEnergy",
    "Judgement",
    "Reliability",
    "against",
    "attacks",
    "auroc",
    "brier",
    "coverage",
    "crps_gaussian_mixture",
    "ece",
    "ece_adaptive",
    "ece_classwise",
    "elbo",
    "error",
    "evidence",
    "fpr95",
    "free_energy",
    "gibbs_nll",
    "judge",
    "lppd",
    "lppd_bias",
    "lppd_error",
    "nll",
    "pruned_shares",
    "pruning_curve",
    "reliability",
    "reliability_all_classes",
    "rmse",
    "robustness",
    "signal_to_noise_histogram",
    "signal_to_noise_quantiles",
    "wasserstein_2",
    "width",
]
