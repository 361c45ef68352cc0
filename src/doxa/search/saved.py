"""A search's state as numbers and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from doxa.search.ask_tell import Search
from doxa.search.distribution.gaussian import Gaussian
from doxa.search.distribution.importance_mixing import Memory

OPTIMISER = "optimiser."


def packed(search: Search) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A search's state as numbers and tensors."""
    state, numbers = search.state(), dict[str, Any]()
    tensors: dict[str, Tensor] = {"mean": state["mean"], "coordinate": state["coordinate"]}
    for index, own in state["optimiser"]["state"].items():
        for name, value in own.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{OPTIMISER}{index}.{name}"] = value
    if search.larger is not None:
        tensors["larger"] = search.larger
    if search.memory is not None:
        old = search.memory
        tensors |= {"old.mean": old.at.mean, "old.scale": old.at.scale}
        tensors |= {"old.points": old.points, "old.values": old.values}
    return {"generation": search.generation, "rate": search.rate, "optimiser": numbers}, tensors


def restore(search: Search, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Put a search to where it was packed."""
    here = {k: t.to(search.mean) for k, t in tensors.items() if k.startswith("old.") or k == "larger"}
    states: dict[int, dict[str, Any]] = {}
    for name, value in (*tensors.items(), *header["optimiser"].items()):
        if name.startswith(OPTIMISER):
            index, _, part = name.removeprefix(OPTIMISER).partition(".")
            states.setdefault(int(index), {})[part] = value
    optimiser = {**search.optimiser.state_dict(), "state": states}
    optimiser["param_groups"][1]["lr"] = header["rate"]
    memory = None
    if "old.points" in here:
        at = Gaussian(here["old.mean"], here["old.scale"], search.groups)
        memory = Memory(at, here["old.points"], here["old.values"])
    search.load(
        {
            "mean": tensors["mean"],
            "coordinate": tensors["coordinate"],
            "generation": header["generation"],
            "optimiser": optimiser,
            "memory": memory,
            "larger": here.get("larger"),
        }
    )
