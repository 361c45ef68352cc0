"""Members of rooms as JSON and tensors, and back: what the file of a belief is made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from torch import Tensor

from doxa.errors import BadInput, BrokenFile, shorten
from doxa.predict.field_types import hints_of, is_list, matches
from doxa.predict.rooms import ROOMS, room_of
from doxa.registry import load_plugins
from doxa.storage.sample_store import ROW_SOURCES


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


def decode(value: Any, tensors: dict[str, Any], name: str) -> Any:
    """The way back from `encode`; what is used of `tensors` is taken out of them, so that nothing is used twice."""
    if isinstance(value, list):
        return tuple(decode(v, tensors, f"{name}[{i}]") for i, v in enumerate(value))
    if not isinstance(value, dict):
        return value
    for marker, kinds in (("tensor", (Tensor,)), ("stream", ROW_SOURCES)):
        if value.keys() == {marker}:
            key = value[marker]
            if not isinstance(key, str) or not isinstance(tensors.get(key), kinds):
                raise BrokenFile(
                    f"the file names as {name} a {marker} {shorten(repr(key))} that it does not hold for it"
                )
            return tensors.pop(key)
    room, _, member_name = str(value.get("is")).partition(".")
    table = ROOMS.get(room, {})
    if member_name not in table:
        load_plugins()
    if member_name not in table:
        kind = shorten(repr(value.get("is")))
        raise BrokenFile(f"the file names {kind} as {name}, which this Doxa does not know: register it first")
    fields = {k: decode(v, tensors, f"{name}.{k}") for k, v in value.items() if k != "is"}
    for field, hint in hints_of(table[member_name]).items():
        if field in fields and not matches(fields[field], hint):
            raise BrokenFile(f"{name}.{field} is {shorten(repr(value[field]))}, which a {member_name} does not take")
        if is_list(hint) and isinstance(fields.get(field), tuple):
            fields[field] = list(fields[field])
    try:
        return table[member_name](**fields)
    except (TypeError, ValueError, OverflowError, IndexError, AttributeError, RuntimeError) as error:
        raise BrokenFile(f"the file's {name}, a {value['is']!r}, cannot be built: {error}") from None


def decode_member(value: Any, tensors: dict[str, Any], name: str, room: str) -> Any:
    """A member of one room and no other."""
    member = decode(value, tensors, name)
    if room_of(member) != room:
        raise BrokenFile(f"the file's {name} is {shorten(repr(value))}, which is no member of {room}")
    return member


def map_tensors(value: Any, f: Callable[[Tensor], Tensor]) -> Any:
    """A member of a room with every tensor in it replaced by f of it."""
    if isinstance(value, Tensor):
        return f(value)
    if isinstance(value, tuple | list):
        mapped = [map_tensors(v, f) for v in value]
        return tuple(mapped) if isinstance(value, tuple) else mapped
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{x.name: map_tensors(getattr(value, x.name), f) for x in dataclasses.fields(value)}
        )
    return value
