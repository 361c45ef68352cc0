"""`doxa version`: what is installed."""

from __future__ import annotations

from typing import Any

from doxa_cli.options import Json
from doxa_cli.terminal import print_json, print_line, print_pairs

WORDS = {"True": "yes", "False": "no", "None": "no"}


def version(as_json: Json = False) -> None:
    """Print the versions of Doxa, torch, NumPy and Python, and what they run on.

    Example: doxa version --json
    """
    import platform

    import numpy
    import torch

    from doxa.kernels import library
    from doxa.version import VERSION

    cuda = torch.cuda.is_available()
    versions: dict[str, Any] = {
        "doxa": VERSION,
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "compiled_kernels": library() is not None,
        "cuda": torch.cuda.get_device_name() if cuda else None,
        "threads": torch.get_num_threads(),
    }
    if as_json:
        print_json(versions)
        return
    print_pairs((name.replace("_", " "), WORDS.get(str(value), value)) for name, value in versions.items())


def print_version(requested: bool) -> None:
    """The version alone, without importing Doxa."""
    if requested:
        import importlib.metadata

        import typer

        print_line(importlib.metadata.version("doxa"))
        raise typer.Exit
