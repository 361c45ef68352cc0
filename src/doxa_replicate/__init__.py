"""REPLICATION: every table and figure of the documents that Doxa was built from, and which of their claims hold.

To add one: a file in its document's folder with an `ARTEFACT`.
"""

from typing import TYPE_CHECKING

from doxa.moved.names import renamed
from doxa_replicate import variational_optimisation, weight_uncertainty
from doxa_replicate.contract import FAIL, OPEN, PASS, Artefact, Claim, ReplicationOptions
from doxa_replicate.discovery import artefacts
from doxa_replicate.perform import perform, write

DOCUMENTS = (weight_uncertainty, variational_optimisation)

TABLE: dict[str, Artefact] = {artefact.name: artefact for document in DOCUMENTS for artefact in artefacts(document)}

if not TYPE_CHECKING:  # a type checker shall report the old names
    __getattr__ = renamed(__name__, {"Ask": "ReplicationOptions"})

__all__ = ["DOCUMENTS", "FAIL", "OPEN", "PASS", "TABLE", "Artefact", "Claim", "ReplicationOptions", "perform", "write"]
