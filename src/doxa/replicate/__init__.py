"""REPLICATION: every table and figure of the documents that Doxa was built from, and which of their claims hold.

To add one: a file in its document's folder with an `ARTEFACT`, and a line in the folder's `ARTEFACTS`.
"""

from doxa.replicate.contract import FAIL, OPEN, PASS, Artefact, Ask, Claim
from doxa.replicate.perform import perform, write
from doxa.replicate.variational_optimisation import ARTEFACTS as VARIATIONAL_OPTIMISATION
from doxa.replicate.weight_uncertainty import ARTEFACTS as WEIGHT_UNCERTAINTY

TABLE: dict[str, Artefact] = {artefact.name: artefact for artefact in (*WEIGHT_UNCERTAINTY, *VARIATIONAL_OPTIMISATION)}

__all__ = ["FAIL", "OPEN", "PASS", "TABLE", "Artefact", "Ask", "Claim", "perform", "write"]
