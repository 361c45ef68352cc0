"""Which artefacts there are: whatever module in a document's folder has an `ARTEFACT` is one."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from doxa_replicate.contract import Artefact


def artefacts(document: ModuleType) -> list[Artefact]:
    """Those of a document, in its own order."""
    modules = [document, *(importlib.import_module(info.name) for info in _submodules(document))]
    registered = [module.ARTEFACT for module in modules if hasattr(module, "ARTEFACT")]
    return sorted(registered, key=lambda artefact: (artefact.order, artefact.name))


def _submodules(document: ModuleType) -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.walk_packages(document.__path__, f"{document.__name__}."))
