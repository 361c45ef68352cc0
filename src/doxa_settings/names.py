"""The members of the rooms and the data sets by name, for help and completion without importing any of them.

Where a member is a line of its room's `__init__.py`, the names are read off these lines; the rooms' tables are made
from them by the same rule.
"""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path


def is_member_name(name: str) -> bool:
    """Whether a name is written as those of members are, in lower case and without a _ before it."""
    return name.islower() and not name.startswith("_")


def parse_members(source: str | bytes, package: str) -> tuple[str, ...]:
    """The members of a room in alphabetical order: what its `__init__.py` imports in lower case from its own files."""
    imported_names = {
        alias.asname or alias.name
        for line in ast.parse(source).body
        if isinstance(line, ast.ImportFrom) and (line.module or "").startswith(f"{package}.")
        for alias in line.names
    }
    return tuple(sorted(filter(is_member_name, imported_names)))


def read_members(init_file: Path, room: str) -> tuple[str, ...]:
    """The members of a room of Doxa; help names none where the source is broken, or missing as in a frozen program."""
    try:
        return parse_members(init_file.read_bytes(), f"doxa.{room}")
    except (OSError, SyntaxError, ValueError):
        return ()


def _members(room: str) -> tuple[str, ...]:
    spec = find_spec("doxa")  # which imports nothing of it
    folders = spec.submodule_search_locations if spec else None
    return read_members(Path(folders[0], *room.split("."), "__init__.py"), room) if folders else ()


NETS = ("mlp", "lenet5")
ACTIVATIONS = ("relu", "tanh", "gelu", "silu", "elu", "softplus", "sigmoid")
TASKS = ("regression", "classification")
# And `ensemble`, by --members.
LEARNERS = ("auto", *(name for name in _members("learners") if name != "ensemble"), "search")
PRIORS = _members("priors")
POSTERIORS = ("mean_field",)  # the ones that a learner can be told to learn
NOISES = _members("noise")
LIKELIHOODS = _members("likelihoods")
KL_WEIGHTS = _members("kl_weights")
RATES = _members("rates")
TORCH_OPTIMISERS = ("adam", "adamw", "sgd", "rmsprop", "adagrad")
NOT_OPTIMISERS_BY_WORDS = ("langevin",)  # whose steps are the learner's of that name
OPTIMISERS = (
    *TORCH_OPTIMISERS,
    *(name for name in _members("optimisers") if name not in (*TORCH_OPTIMISERS, *NOT_OPTIMISERS_BY_WORDS)),
)
ATTACKS = _members("judge.attacks")
PERTURBATIONS = ("local", "weight_space", "low_rank")
OBJECTIVES = ("zero_one", "f1")
FUNCTIONS = ("sphere", "himmelblau", "rosenbrock", "rastrigin")
PRECISIONS = ("bfloat16", "float16")
DATA = (
    "digits",
    "curve",
    "two_moons",
    "mnist",
    "fashion_mnist",
    "cifar10",
    "mushroom",
    "ionosphere",
    "pima_diabetes",
    "uci_regression/bostonHousing",
    "uci_regression/concrete",
    "uci_regression/kin8nm",
    "uci_regression/naval-propulsion-plant",
    "uci_regression/power-plant",
    "uci_regression/protein-tertiary-structure",
    "uci_regression/wine-quality-red",
    "temperature/brussels",
    "temperature/rio_de_janeiro",
    "temperature/uccle",
)
