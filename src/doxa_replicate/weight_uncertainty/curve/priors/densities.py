"""What both tables of log predictive densities hold."""

from __future__ import annotations

from typing import Any

from doxa_replicate.over_seeds import mean, standard_error
from doxa_replicate.weight_uncertainty.curve.trainings import Records


def lppd_table(records: Records) -> dict[str, dict[str, Any]]:
    """lppd over seeds, with what its draws leave unsure."""
    return {
        prior: {
            "lppd": mean([r["lppd"] for r in rows]),
            "se": standard_error([r["lppd"] for r in rows]),
            "inside": mean([r["lppd_inside"] for r in rows]),
            "monte_carlo_error": mean([r["lppd_error"] for r in rows]),
            "monte_carlo_bias": mean([r["lppd_bias"] for r in rows]),
            "each": [r["lppd"] for r in rows],
        }
        for prior, rows in records.items()
    }
