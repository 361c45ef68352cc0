"""Modules that are elsewhere now."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

NEW_ADDRESSES = {
    "doxa.judge.bandits": "doxa.bandits",
    "doxa.options": "doxa.training.options",
    "doxa.replicate": "doxa_replicate",
    "doxa.sample_store": "doxa.storage.sample_store",
}


class MovedModules(MetaPathFinder, Loader):
    """Imports an old address, or one below it, as the very module that is at the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if new_address(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        address = new_address(module.__name__)
        warnings.warn(f"{module.__name__} is now {address}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = import_module(address)
        # What is below it is there already: imported as a part of the old package it would be bound in the new one by
        # its name, over a function that has the same, as `play` of bandits.
        for name in [name for name in sys.modules if name.startswith(f"{address}.")]:
            sys.modules.setdefault(module.__name__ + name.removeprefix(address), sys.modules[name])


def new_address(address: str) -> str:
    """Where a module is now; nothing for one that has not moved."""
    for old, new in NEW_ADDRESSES.items():
        if address == old or address.startswith(f"{old}."):
            return new + address.removeprefix(old)
    return ""


def find_moved_modules() -> None:
    """Let old addresses be imported.

    First of all finders: others would read a module below an old package a second time, from the new one's folder.
    """
    sys.meta_path.insert(0, MovedModules())
