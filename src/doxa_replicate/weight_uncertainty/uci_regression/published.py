"""What others have published for these sets, one hidden layer of 50 units (protein: 100): means and standard errors."""

from __future__ import annotations

SETS = (
    "bostonHousing",
    "concrete",
    "kin8nm",
    "naval-propulsion-plant",
    "power-plant",
    "protein-tertiary-structure",
    "wine-quality-red",
)

SOURCES = {
    "deterministic VI": "Wu et al. (2019), Deterministic variational inference for robust Bayesian neural networks, "
    "table 2: full covariances of activations, noise told for each input",
    "deterministic VI, diagonal": "the same, with diagonal covariances",
    "Monte-Carlo VI": "the same model by sampling, S = 10",
    "MC dropout": "Mukhoti, Stenetorp & Gal (2018), On the importance of strong baselines in Bayesian deep learning: "
    "rate and precision by grid search inside each training split, as kept with Gal & Ghahramani's code",
    "deep ensembles": "Lakshminarayanan et al. (2017), Simple and scalable predictive uncertainty estimation using "
    "deep ensembles, table 1: five nets",
    "PBP": "Hernández-Lobato & Adams (2015), Probabilistic backpropagation for scalable learning of Bayesian neural "
    "networks",
}
VARIATIONAL_METHODS = ("deterministic VI", "deterministic VI, diagonal", "Monte-Carlo VI")


def _by_set(*values: float) -> dict[str, float]:
    return dict(zip(SETS, values, strict=True))


LOG_LIKELIHOOD = {
    "deterministic VI": _by_set(-2.41, -3.06, 1.13, 6.29, -2.80, -2.85, -0.90),
    "deterministic VI, diagonal": _by_set(-2.42, -3.07, 1.13, 6.22, -2.80, -2.84, -0.91),
    "Monte-Carlo VI": _by_set(-2.46, -3.07, 1.14, 5.94, -2.80, -2.87, -0.92),
    "MC dropout": _by_set(-2.40, -2.93, 1.14, 4.45, -2.80, -2.87, -0.93),
    "deep ensembles": _by_set(-2.41, -3.06, 1.20, 5.63, -2.79, -2.83, -0.94),
    "PBP": _by_set(-2.57, -3.16, 0.90, 3.73, -2.84, -2.97, -0.97),
}
RMSE = {  # Wu et al. give none
    "MC dropout": _by_set(2.90, 4.82, 0.08, 0.00, 4.01, 4.27, 0.62),
    "deep ensembles": _by_set(3.28, 6.03, 0.09, 0.00, 4.11, 4.71, 0.64),
    "PBP": _by_set(3.01, 5.67, 0.10, 0.01, 4.12, 4.73, 0.64),
}


def best_variational(name: str) -> float:
    """The highest log-likelihood that was published for variational inference on a set."""
    return max(LOG_LIKELIHOOD[row][name] for row in VARIATIONAL_METHODS)
