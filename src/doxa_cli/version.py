"""`doxa version`: what is installed."""

from __future__ import annotations

from typing import Any

from doxa_cli.options import Json
from doxa_cli.terminal import pairs, put, put_json

WORDS = {"True": "yes", "False": "no", "None": "no"}


def version(as_json: Json = False) -> None:
    """Print the versions of Doxa, torch and Python, and what they run on."""
    import platform

    import numpy
    import torch

    from doxa.kernels import library
    from doxa.version import VERSION

    cuda = torch.cuda.is_available()
    found: dict[str, Any] = {
        "doxa": VERSION,
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "compiled_kernels": library() is not None,
        "cuda": torch.cuda.get_device_name() if cuda else None,
        "threads": torch.get_num_threads(),
    }
    if as_json:
        put_json(found)
        return
    pairs((name.replace("_", " "), WORDS.get(str(value), value)) for name, value in found.items())


def installed(wanted: bool) -> None:
    """The version alone, without importing Doxa."""
    if wanted:
        import importlib.metadata

        import typer

        put(importlib.metadata.version("doxa"))
        raise typer.Exit
