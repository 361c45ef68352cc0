"""Settings as plain JSON."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from doxa.storage.sealed import sha256_of


def describe(value: Any) -> Any:
    """Any settings object as plain JSON, for records and for comparing runs; tensors by shape and digest."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return {"tensor": list(value.shape), "sha256": sha256_of("", {"": value.detach().cpu()})}
    if isinstance(value, nn.Module):
        return {
            "is": type(value).__name__,
            "sha256": sha256_of("", {k: t.detach().cpu() for k, t in value.state_dict().items()}),
        }
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return [describe(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            "is": type(value).__name__,
            # What a member is not told apart by, such as a number of workers, is no setting of a run.
            **{f.name: describe(getattr(value, f.name)) for f in dataclasses.fields(value) if f.compare},
        }
    if isinstance(value, functools.partial):
        return {"is": describe(value.func), "arguments": describe(value.args), **describe(value.keywords)}
    return getattr(value, "__qualname__", type(value).__qualname__)
