"""The kinds of cases by name. To add one: a file with a class as in `contract.Kind`, and a line here."""

from __future__ import annotations

from doxa_bench.faults.contract import Kind
from doxa_bench.faults.kills import Kills

KINDS: dict[str, Kind] = {
    "kills": Kills(),
}
