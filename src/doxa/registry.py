"""Members of a room by name: what files, settings and commands look up, and how a member of your own gets there."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from importlib import metadata
from types import ModuleType
from typing import Any

from doxa.errors import BadInput

PLUGINS = "doxa.plugins"  # the group of entry points by which an installed package enters members of its own


def members(room: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a room, given the names of its `__init__`: those it imports in lower case from its files."""
    return {
        name: value
        for name, value in sorted(room.items())
        if name.islower() and not name.startswith("_") and not isinstance(value, ModuleType)
    }


def examples(room: str, path: Iterable[str]) -> dict[str, Any]:
    """The `EXAMPLES` of a room's files, by the members' names: what the laws of the room are tried on."""
    merged: dict[str, Any] = {}
    for file in pkgutil.iter_modules(path):
        module = sys.modules.get(f"{room}.{file.name}")
        merged |= getattr(module, "EXAMPLES", {})
    return merged


def enter(table: MutableMapping[str, Any], name: str, maker: Any) -> None:
    """Give a member a name in its room's table; the name must be a word that nothing else has."""
    if not name.isidentifier() or not name.islower():
        raise BadInput(f"{name!r} is no name for a member: use lower-case letters, digits and _, as in 'horseshoe'")
    if name in table and table[name] is not maker:
        raise BadInput(f"the name {name!r} is taken by {table[name]!r}; choose another")
    table[name] = maker


def load_plugins() -> None:
    """Import what installed packages name under `doxa.plugins`; these modules call `register`."""
    for point in metadata.entry_points(group=PLUGINS):
        try:
            point.load()
        except Exception as error:
            raise BadInput(f"the plugin {point.name} ({point.value}) cannot be loaded: {error}") from error
