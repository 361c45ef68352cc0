"""Records that several figures set side by side: by the kind of prior, and by the noise of the likelihood."""

from __future__ import annotations

from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.weight_uncertainty.curve.trainings import DEFAULT_PRIOR, NOISE, Records, belief_records


def records_by_prior_kind(options: ReplicationOptions) -> Records:
    """Records with a single Gaussian, and with a scale mixture whose wide scale is the same."""
    beliefs = {"single Gaussian": ("gaussian", f"{DEFAULT_PRIOR}"), "scale mixture": ("mixture", "1, 6")}
    return {name: belief_records(options, fleet)[prior] for name, (fleet, prior) in beliefs.items()}


def records_by_noise(options: ReplicationOptions) -> Records:
    """Records by the scale of the likelihood, all with the same prior."""
    fleets = {"0.01": "likelihood 0.01", f"{NOISE:g}": "gaussian", "1": "likelihood 1"}
    return {scale: belief_records(options, fleet)[f"{DEFAULT_PRIOR}"] for scale, fleet in fleets.items()}
