"""A device by the name that --device was given."""

from __future__ import annotations

from typing import Any


def device_of(name: str) -> Any:
    """The torch device of a name, if it can be used here."""
    import torch

    from doxa.errors import BadInput, shorten

    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise BadInput(
            f"--device {name} cannot be used here ({shorten(str(error))}); name another, as in cpu or cuda:0"
        ) from None
