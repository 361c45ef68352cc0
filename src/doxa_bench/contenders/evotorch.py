"""evotorch: its separable natural evolution strategy, with a fitness that runs all nets of a generation at once."""

from __future__ import annotations

import logging
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from doxa_bench.contenders.library import installed_version
from doxa_bench.timing import Step

NAME = "evotorch"


def version() -> str | None:
    """The installed version, or None."""
    return installed_version(NAME)


def generation(net: nn.Module, x: Tensor, y: Tensor, size: int, scale: float) -> Step:
    """Ask, evaluate and tell of SNES around a net's weights, as its examples of vectorised fitness have it.

    It keeps no record of best and worst solutions, which would cost it another pass.
    """
    from evotorch import Problem
    from evotorch.algorithms import SNES
    from evotorch.decorators import vectorized
    from evotorch.neuroevolution.net import ModuleExpectingFlatParameters

    logging.getLogger(NAME).setLevel(logging.WARNING)
    start = nn.utils.parameters_to_vector(net.parameters()).detach()
    run: Any = ModuleExpectingFlatParameters(net)
    fitness = vectorized(torch.func.vmap(lambda flat: F.cross_entropy(run(flat, x), y)))
    problem = Problem(
        "min",
        fitness,
        solution_length=run.parameter_length,
        initial_bounds=(-1.0, 1.0),
        dtype=torch.float32,
        device=x.device,
        store_solution_stats=False,
    )
    searching = SNES(problem, popsize=size, stdev_init=scale, center_init=start)

    def step() -> None:
        with torch.no_grad():
            searching.step()

    return step
