"""Members of rooms as JSON and tensors, and back: what the file of a belief is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from doxa import likelihoods, posteriors, priors
from doxa.errors import BadInput, BrokenFile
from doxa.posteriors.dropout import Masked
from doxa.registry import load_plugins
from doxa.storage.sample_store import ROW_SOURCES

ROOMS: dict[str, Mapping[str, Any]] = {
    "priors": priors.TABLE,
    "posteriors": posteriors.TABLE,
    "likelihoods": likelihoods.TABLE,
    "masks": {"channels": Masked},
}


def encode(value: Any, name: str, tensors: dict[str, Any]) -> Any:
    """A member of a room as JSON; its tensors, and its rows on disk, go into `tensors` under `name`."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, ROW_SOURCES):
        tensors[name] = value
        return {"stream": name}
    if isinstance(value, tuple | list):
        return [encode(v, f"{name}.{i}", tensors) for i, v in enumerate(value)]
    for room, table in ROOMS.items():
        for member_name, member_class in table.items():
            if type(value) is member_class and dataclasses.is_dataclass(value):
                fields = {
                    f.name: encode(getattr(value, f.name), f"{name}.{f.name}", tensors)
                    for f in dataclasses.fields(value)
                }
                return {"is": f"{room}.{member_name}", **fields}
    raise BadInput(
        f"a {type(value).__name__} cannot be saved: make it a dataclass and register it in its room, "
        "e.g. doxa.priors.register('mine', Mine)"
    )


def decode(value: Any, tensors: Mapping[str, Any]) -> Any:
    """The way back from `encode`."""
    if isinstance(value, list):
        return tuple(decode(v, tensors) for v in value)
    if not isinstance(value, dict):
        return value
    for marker, kinds in (("tensor", (Tensor,)), ("stream", ROW_SOURCES)):
        if marker in value:
            if not isinstance(tensors.get(value[marker]), kinds):
                raise BrokenFile(f"the file names a {marker} {value[marker]!r} that it does not hold")
            return tensors[value[marker]]
    room, _, member_name = str(value.get("is")).partition(".")
    table = ROOMS.get(room, {})
    if member_name not in table:
        load_plugins()
    if member_name not in table:
        raise BrokenFile(f"the file names {value.get('is')!r}, which this Doxa does not know: register it first")
    member_class = table[member_name]
    try:
        return member_class(**{k: decode(v, tensors) for k, v in value.items() if k != "is"})
    except (TypeError, BadInput) as error:
        raise BrokenFile(f"the file's {value['is']!r} cannot be built: {error}") from None


def map_tensors(value: Any, f: Callable[[Tensor], Tensor]) -> Any:
    """A member of a room with every tensor in it replaced by f of it."""
    if isinstance(value, Tensor):
        return f(value)
    if isinstance(value, tuple):
        return tuple(map_tensors(v, f) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{x.name: map_tensors(getattr(value, x.name), f) for x in dataclasses.fields(value)}
        )
    return value
