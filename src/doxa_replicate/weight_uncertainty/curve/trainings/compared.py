"""Records that several figures set side by side: by the kind of prior, and by the noise of the likelihood."""

from __future__ import annotations

from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.curve.trainings.beliefs import Records, belief_records
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import DEFAULT_PRIOR, NOISE, SWEEP_PRIOR


def records_by_prior_kind(options: ReplicationOptions, column: str) -> Records:
    """Records with a single Gaussian, and with a scale mixture whose wide scale is the same."""
    beliefs = {"single Gaussian": ("gaussian", f"{DEFAULT_PRIOR}"), "scale mixture": ("mixture", "1, 6")}
    return {name: belief_records(options, column, fleet)[prior] for name, (fleet, prior) in beliefs.items()}


def records_by_noise(options: ReplicationOptions, column: str) -> Records:
    """Records by the scale of the likelihood, all with the same prior."""
    fleets = {"0.01": "likelihood 0.01", f"{NOISE:g}": "gaussian", "1": "likelihood 1"}
    prior = f"{SWEEP_PRIOR[column]}"
    return {scale: belief_records(options, column, fleet)[prior] for scale, fleet in fleets.items()}
