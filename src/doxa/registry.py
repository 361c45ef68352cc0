"""Members of a room by name: what files, settings and commands look up, and how a member of your own gets there."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, MutableMapping
from importlib import metadata
from types import ModuleType
from typing import Any

from doxa.errors import BadInput
from doxa_settings.names import is_member_name, parse_members

PLUGINS = "doxa.plugins"  # the group of entry points by which an installed package enters members of its own
# Words that are read as values, so that nothing could be asked for by them.
VALUES = ("none", "true", "false", "nan", "inf", "infinity")


def members(room: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a room, given the names of its `__init__`: those it imports in lower case from its own files."""
    package = room["__name__"]
    try:
        names = parse_members(inspect.getsource(sys.modules[package]), package)
    except OSError:  # no source, as in a program frozen to bytecode
        names = _names_held_by_files(room, package)
    return {name: room[name] for name in names}


def _names_held_by_files(room: Mapping[str, Any], package: str) -> tuple[str, ...]:
    """What `parse_members` reads off the source, told by the values: those that a file of the room holds as well."""
    prefix = f"{package}."
    files = [module for name, module in sys.modules.items() if name.startswith(prefix)]
    held = {id(value) for file in files for value in vars(file).values() if not isinstance(value, ModuleType)}
    return tuple(sorted(name for name, value in room.items() if is_member_name(name) and id(value) in held))


def examples(room: str, path: Iterable[str]) -> dict[str, Any]:
    """The `EXAMPLES` of a room's files, by the members' names: what the laws of the room are tried on."""
    merged: dict[str, Any] = {}
    for file in pkgutil.iter_modules(path):
        file_examples = getattr(sys.modules.get(f"{room}.{file.name}"), "EXAMPLES", {})
        twice = ", ".join(sorted(merged.keys() & file_examples.keys()))
        if twice:
            raise BadInput(f"two files of {room} have EXAMPLES of {twice}, {file.name}.py is one of them; rename these")
        merged |= file_examples
    return merged


def enter(
    table: MutableMapping[str, Any],
    name: str,
    member: Any,
    kind: type | None = None,
    reserved: Collection[str] = (),
) -> None:
    """Give a member a name in its room's table: a word that nothing else has, and that words can reach.

    `kind` is the class of a room's members that are not made but ready; `reserved` are names that mean something else
    where the room's members are asked for.
    """
    if not isinstance(name, str) or not name.isidentifier() or not name.islower():
        raise BadInput(f"{name!r} is no name for a member: use lower-case letters, digits and _, as in 'horseshoe'")
    if name in table and table[name] is not member:
        raise BadInput(f"the name {name!r} is taken by {table[name]!r}; choose another")
    if name not in table and name in VALUES:
        raise BadInput(f"the name {name!r} is read as a value wherever it is written; choose another")
    if name not in table and name in reserved:
        raise BadInput(f"the name {name!r} means one of Doxa's own wherever it is written; choose another")
    if kind is None and not callable(member):
        raise BadInput(f"{name!r} must name a class or a function that makes the member; got {member!r}")
    if kind is not None and not isinstance(member, kind):
        raise BadInput(f"{name!r} must name an object of class {kind.__name__}; got {member!r}")
    table[name] = member


def load_plugins() -> None:
    """Import what installed packages name under `doxa.plugins`; these modules call `register`.

    One that cannot be imported is warned of, and keeps nothing else from being found.
    """
    for point in metadata.entry_points(group=PLUGINS):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            reason = str(error) or type(error).__name__
            warnings.warn(f"the plugin {point.name} ({point.value}) cannot be loaded: {reason}", stacklevel=2)
