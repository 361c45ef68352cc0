"""What `doxa.fit` and `doxa.fleet` are told besides nets, data and learners: one record of it, with its defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

import torch

from doxa.engine.epochs import Watch
from doxa.errors import BadInput, require_whole
from doxa.optimisers.adam import Adam
from doxa.optimisers.langevin import Langevin
from doxa.optimisers.sgd import Sgd
from doxa.optimisers.torchs import MakeOptimiser
from doxa.weights.layout import Chooser
from doxa_settings.record import LearningSettings

# One of doxa.optimisers, or what makes a torch optimiser from a list of tensors.
Optimiser = Adam | Sgd | Langevin | MakeOptimiser

COUNTS = (
    "epochs",
    "batch_size",
    "validation_samples",
    "patience",
    "checkpoint_every",
    "checkpoint_steps",
    "watch_every",
)
KNOBS = {knob.name: knob for knob in fields(LearningSettings)}


def _option(default: Any, description: str) -> Any:
    return field(default=default, metadata={"help": description})


def _shared_option(name: str, default: int | None = None) -> Any:
    """An option that `doxa fit` has too, in the same words; its default is the same unless the rows decide there."""
    knob = KNOBS[name]
    return _option(knob.default if default is None else default, knob.metadata["setting"].help)


@dataclass(frozen=True)
class Options:
    """What all members of a fleet have in common; learner, seed, rate, rows and validation are each member's own.

    Every field is a keyword of `doxa.fit` and of `doxa.fleet`, its default is theirs, and what cannot be used is
    refused here.
    """

    epochs: int = _shared_option("epochs", 10)
    batch_size: int = _shared_option("batch_size", 128)
    optimiser: Optimiser | None = _option(
        None, "One of doxa.optimisers, or what makes one of torch's; Adam by default."
    )
    validation_samples: int = _shared_option("validation_samples")
    patience: int | None = _shared_option("patience")
    size: int | None = _option(None, "Number of rows, of data that cannot tell it.")
    random: Chooser | None = _option(None, "Which weights are beliefs, by name and tensor; all by default.")
    device: torch.device | str | None = _option(None, "Where to learn; where the net is by default.")
    autocast: torch.dtype | None = _option(None, "Floating-point type that the net's operations are cast to.")
    checkpoint: str | PathLike[str] | None = _option(None, "Folder in which the run is saved.")
    checkpoint_every: int = _shared_option("checkpoint_every")
    checkpoint_steps: int | None = _shared_option("checkpoint_steps")
    resume: bool = _option(False, "Go on with the run in the folder, to the same bits.")
    progress: bool = _option(True, "Show how far it is.")
    watch: Watch | None = _option(None, "Shown the beliefs awake, it gives a row of numbers for the history of each.")
    watch_every: int = _option(1, "Epochs from one such look to the next.")

    def __post_init__(self) -> None:
        for name in COUNTS:
            value = getattr(self, name)
            if value is not None or getattr(Options, name) is not None:
                object.__setattr__(self, name, require_whole(name, value))
        require_optimiser(self.optimiser)
        require_autocast(self.autocast)

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any], **replaced: Any) -> Options:
        """Those among a call's arguments that are options, some replaced by others."""
        return cls(**{f.name: arguments[f.name] for f in fields(cls)} | replaced)


def require_optimiser(optimiser: Any) -> None:
    """Refuse what is no optimiser and cannot make one."""
    if isinstance(optimiser, type) and hasattr(optimiser, "start"):
        raise BadInput(f"optimiser must be one of doxa.optimisers, with brackets; got {optimiser.__name__} without")
    if optimiser is not None and not hasattr(optimiser, "start") and not callable(optimiser):
        raise BadInput(
            "optimiser must be one of doxa.optimisers, or make a torch optimiser from a list of tensors, e.g. "
            "torch.optim.AdamW or "
            f"functools.partial(torch.optim.SGD, momentum=0.9); got {type(optimiser).__name__}"
        )


def require_autocast(autocast: Any) -> None:
    """Refuse what operations cannot be cast to."""
    if autocast is not None and not (isinstance(autocast, torch.dtype) and autocast.is_floating_point):
        raise BadInput(f"autocast must be a floating-point torch dtype such as torch.bfloat16; got {autocast!r}")
