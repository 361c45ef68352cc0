"""POSTERIOR: what is believed of the weights after the data. To add one: a file here and a line in TABLE."""

from doxa.posteriors.delta import Delta as delta
from doxa.posteriors.dropout import Dropout as dropout
from doxa.posteriors.mean_field import Family as mean_field
from doxa.posteriors.mean_field import MeanField
from doxa.posteriors.mixture import Mixture as mixture
from doxa.posteriors.particles import Particles as particles
from doxa.posteriors.samples import Samples as samples

TABLE = {
    "delta": delta,
    "mean_field": MeanField,
    "dropout": dropout,
    "particles": particles,
    "mixture": mixture,
    "samples": samples,
}

__all__ = ["TABLE", "MeanField", "delta", "dropout", "mean_field", "mixture", "particles", "samples"]
