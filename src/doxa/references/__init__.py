"""REFERENCE: the posterior itself, by Hamiltonian Monte Carlo, and how well its chains have mixed.

It stands beside the learners, not among them. A learner is a gradient, a stepper and a collector, and a stepper moves
once for each gradient that it is shown: it never hears of a loss, has no say in when the next one comes, and cannot
take back what it did. A trajectory of Hamiltonian dynamics is many gradients, an energy at either end and a decision
between the two, on all rows of the data. So it is work of its own for the engine's driver, one trajectory of all chains
a unit; gradients, checkpoints, progress and Ctrl-C are those of every training.
"""

from doxa.references.diagnose import Diagnosis, diagnose, values_by_chain
from doxa.references.diagnostics import ess_bulk, ess_mean, ess_tail, r_hat
from doxa.references.hmc import hmc

__all__ = ["Diagnosis", "diagnose", "ess_bulk", "ess_mean", "ess_tail", "hmc", "r_hat", "values_by_chain"]
