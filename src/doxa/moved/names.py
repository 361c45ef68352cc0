"""Names of a room that are called otherwise now."""

from __future__ import annotations

import pkgutil
import warnings
from collections.abc import Callable, Mapping
from typing import Any


def renamed(room: str, new_names: Mapping[str, str]) -> Callable[[str], Any]:
    """A room's `__getattr__`: from its old names to its new ones, or to the address of a module that left it."""

    def get_renamed(name: str) -> Any:
        if name not in new_names:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        address = new_names[name] if "." in new_names[name] else f"{room}:{new_names[name]}"
        warnings.warn(f"{room}.{name} is now {address.replace(':', '.')}", DeprecationWarning, stacklevel=2)
        return pkgutil.resolve_name(address)

    return get_renamed
