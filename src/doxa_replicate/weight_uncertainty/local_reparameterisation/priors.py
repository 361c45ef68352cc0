"""The priors that are learned with local noise too."""

from doxa_replicate.columns import AS_RUN
from doxa_replicate.weight_uncertainty.curve.trainings.recipes import fleet_members

PRIORS = tuple(setting.name for setting in fleet_members(AS_RUN, "local"))  # −log of their scales
