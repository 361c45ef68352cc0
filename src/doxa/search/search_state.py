"""A search's state as numbers and tensors, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from doxa.errors import Diverged
from doxa.search.ask_tell import Search
from doxa.search.distribution.gaussian import SearchDistribution
from doxa.search.distribution.importance_mixing import PreviousGeneration

OPTIMISER = "optimiser."


def pack_search(search: Search) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A search's state as numbers and tensors; Diverged, where it is no longer one to go on from."""
    state, numbers = search.state(), dict[str, Any]()
    tensors: dict[str, Tensor] = {"mean": state["mean"], "coordinate": state["coordinate"]}
    for index, parameter_state in state["optimiser"]["state"].items():
        for name, value in parameter_state.items():
            (tensors if isinstance(value, Tensor) else numbers)[f"{OPTIMISER}{index}.{name}"] = value
    bad = [name for name, t in tensors.items() if not bool(t.isfinite().all())]
    if bad:
        raise Diverged(f"not finite any more after generation {search.generation}: {', '.join(bad)}")
    if search.larger_coordinate is not None:
        tensors["larger"] = search.larger_coordinate
    if search.previous_generation is not None:
        previous = search.previous_generation
        tensors |= {"old.mean": previous.distribution.mean, "old.scale": previous.distribution.scale}
        tensors |= {"old.points": previous.points, "old.values": previous.values}
    return {"generation": search.generation, "rate": search.current_scale_lr, "optimiser": numbers}, tensors


def restore_search(search: Search, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Put a search to where it was packed; what does not fit it is an error."""
    _require_fit(search, header, tensors)
    generation_tensors = {k: t.to(search.mean) for k, t in tensors.items() if k.startswith("old.") or k == "larger"}
    states: dict[int, dict[str, Any]] = {}
    for name, value in (*tensors.items(), *header["optimiser"].items()):
        if name.startswith(OPTIMISER):
            index, _, part = name.removeprefix(OPTIMISER).partition(".")
            states.setdefault(int(index), {})[part] = value
    optimiser = {**search.optimiser.state_dict(), "state": states}
    optimiser["param_groups"][1]["lr"] = header["rate"]
    previous = None
    if "old.points" in generation_tensors:
        distribution = SearchDistribution(
            generation_tensors["old.mean"], generation_tensors["old.scale"], search.groups
        )
        previous = PreviousGeneration(distribution, generation_tensors["old.points"], generation_tensors["old.values"])
    search.load(
        {
            "mean": tensors["mean"],
            "coordinate": tensors["coordinate"],
            "generation": header["generation"],
            "optimiser": optimiser,
            "memory": previous,
            "larger": generation_tensors.get("larger"),
        }
    )


def _require_fit(search: Search, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Refuse tensors of other shapes than the search's own, and numbers that are none."""
    parameters = {"0": search.mean, "1": search.coordinate}
    expected = {"mean": search.mean, "coordinate": search.coordinate}
    for name, tensor in tensors.items():
        if name.startswith(OPTIMISER):
            index = name.removeprefix(OPTIMISER).partition(".")[0]
            if tensor.dim():  # beside counts of steps, there is a number for each of the parameters
                expected[name] = parameters[index]
        if name in expected and tensor.shape != expected[name].shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {tuple(expected[name].shape)}")
        if (name in expected or name.startswith(OPTIMISER)) and not bool(tensor.isfinite().all()):
            raise ValueError(f"{name} is not finite")
    if type(header["generation"]) is not int or header["generation"] < 0:
        raise ValueError(f"generation is {header['generation']!r:.80}, not a number of generations")
    if type(header["rate"]) not in (int, float) or not 0 <= header["rate"] < float("inf"):
        raise ValueError(f"rate is {header['rate']!r:.80}, not a rate")
