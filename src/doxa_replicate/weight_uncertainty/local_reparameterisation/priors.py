"""The priors that are learned with local noise too."""

from doxa_replicate.weight_uncertainty.curve.trainings import FLEETS

PRIORS = tuple(setting.name for setting in FLEETS["local"])  # −log of their scales
