"""The settings of `doxa fit` as options: where the rows come from, and every knob of doxa.runs.Plan."""

from __future__ import annotations

from typing import Annotated, Any

from doxa_cli.names import (
    ACTIVATIONS,
    KL_WEIGHTS,
    LEARNERS,
    LIKELIHOODS,
    NETS,
    NOISES,
    OBJECTIVES,
    OPTIMISERS,
    PERTURBATIONS,
    POSTERIORS,
    PRECISIONS,
    PRIORS,
    RATES,
    TASKS,
)
from doxa_cli.options import flag, option

ROWS, BELIEF, LEARNING = "The rows", "The belief", "Learning it"


def _one_of(known: tuple[str, ...], metavar: str, panel: str, words: str, default: str = "") -> Any:
    return option(metavar, f"{', '.join(known)}{words}", known=known, panel=panel, default=default or False)


Target = Annotated[str | None, option("COLUMN", "The column of the file to predict.", panel=ROWS)]
Task = Annotated[str | None, _one_of(TASKS, "TASK", ROWS, ".", "by the target's values")]
Drop = Annotated[list[str] | None, option("COLUMN", "A column to leave out; give several.", panel=ROWS)]
KeepConstant = Annotated[bool | None, flag("--keep-constant", "Take columns that never vary, too.", panel=ROWS)]
HoldOut = Annotated[float | None, option("SHARE", "Of the rows, to be judged on.", panel=ROWS, default="0.1")]
Encoding = Annotated[str | None, option("NAME", "Of the file's letters.", panel=ROWS, default="utf-8")]

Net = Annotated[
    str | None,
    _one_of(
        NETS,
        "NET",
        BELIEF,
        f"; an mlp's widths, batch_norm=true and activation=tanh ({', '.join(ACTIVATIONS)}) after a colon.",
        "mlp:100,100",
    ),
]
Prior = Annotated[str | None, _one_of(PRIORS, "PRIOR", BELIEF, ", as in laplace:0.5.", "N(0, 1/fan-in)")]
Posterior = Annotated[
    str | None, _one_of(POSTERIORS, "POSTERIOR", BELIEF, ", as in mean_field:layer,scale=0.1.", "mean_field")
]
Likelihood = Annotated[str | None, _one_of(LIKELIHOODS, "LIKELIHOOD", BELIEF, ".", "by the target")]

Random = Annotated[
    str | None, option("NAMES", "Weights that are beliefs, as in '4.*,*.bias'.", panel=BELIEF, default="all")
]

Learner = Annotated[
    str | None,
    _one_of(
        LEARNERS, "LEARNER", LEARNING, "; auto tries KL weights and learns a committee.", "auto; images: variational"
    ),
]
Noise = Annotated[str | None, _one_of(NOISES, "NOISE", LEARNING, ".", "local")]
KLWeight = Annotated[
    str | None,
    _one_of(
        KL_WEIGHTS,
        "WEIGHT",
        LEARNING,
        ", as in annealed:5, or a number; several for auto to try.",
        "0.1; auto: 1,0.1,0.01",
    ),
]
Draws = Annotated[int | None, option("N", "Of the weights, to judge by.", panel=LEARNING, default="50")]
Antithetic = Annotated[bool | None, flag("--antithetic", "Draws in pairs of opposite noise.", panel=LEARNING)]
StepDraws = Annotated[int | None, option("N", "Draws of the weights a step.", panel=LEARNING, default="1")]
DropoutRate = Annotated[float | None, option("RATE", "Of the learner dropout.", panel=LEARNING, default="0.5")]
InputDropout = Annotated[
    float | None, option("RATE", "Of the learner dropout, for the inputs.", panel=LEARNING, default="0")
]
Members = Annotated[int | None, option("N", "An ensemble of so many.", panel=LEARNING, default="1; auto: 3 or 5")]
SameStart = Annotated[bool | None, flag("--same-start", "An ensemble's members start alike.", panel=LEARNING)]
Perturbation = Annotated[
    str | None,
    _one_of(PERTURBATIONS, "NAME", LEARNING, ", of the learner search, as in low_rank:2.", "local"),
]
Objective = Annotated[
    str | None, _one_of(OBJECTIVES, "NAME", LEARNING, ", for the learner search.", "the likelihood's")
]
Population = Annotated[
    int | None, option("N", "Weights tried a step by the learner search.", panel=LEARNING, default="100")
]
PerturbationScale = Annotated[
    float | None, option("X", "Scale of the noise of the learner search.", panel=LEARNING, default="0.05")
]
Workers = Annotated[
    int | None, option("N", "Processes that evaluate for the learner search.", panel=LEARNING, default="0")
]
Optimiser = Annotated[str | None, _one_of(OPTIMISERS, "NAME", LEARNING, ", as in sgd:momentum=0.9.", "adam")]
Autocast = Annotated[str | None, _one_of(PRECISIONS, "DTYPE", LEARNING, ", of the net's operations.", "float32")]
Rate = Annotated[
    str | None,
    _one_of(RATES, "RATE", LEARNING, ", as in step:0.01,10, or a number.", "cosine:0.001; auto: 0.005"),
]
Epochs = Annotated[
    int | None,
    option("N", "Passes over the rows, at most.", panel=LEARNING, default="20, or 4000 steps; auto: as needed"),
]
BatchSize = Annotated[int | None, option("N", "Rows a step.", panel=LEARNING, default="128; auto: by the rows")]
Patience = Annotated[
    int | None, option("N", "Stop after so many epochs without gain on validation rows.", panel=LEARNING)
]
ValidationSamples = Annotated[
    int | None, option("N", "Draws that score an epoch, with --patience.", panel=LEARNING, default="8")
]
CheckpointEvery = Annotated[
    int | None, option("N", "Epochs between two savings, to go on from by --resume.", panel=LEARNING, default="1")
]
Seed = Annotated[int | None, option("N", "Of all that is random.", panel=LEARNING, default="0")]
Device = Annotated[str | None, option("DEVICE", "cpu, cuda, cuda:1 …", "--device", panel=LEARNING, default="cpu")]
