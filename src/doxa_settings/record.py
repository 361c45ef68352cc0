"""Every setting of `doxa fit`, once: its name, type, default and words.

Options, their help and completion, the names of a TOML file and of --set, and `doxa.runs.Plan` are made from these two
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from doxa_settings.names import (
    ACTIVATIONS,
    DATA,
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
from doxa_settings.setting import one_of, told

ROWS, BELIEF, LEARNING = "The rows", "The belief", "Learning it"  # panels of the help


@dataclass(frozen=True)
class Rows:
    """Where the rows come from, and where the run goes."""

    source: str | None = told(
        None, "SOURCE", "A CSV or parquet file, or a data set by name.", known=DATA, argument=True
    )
    target: str | None = told(None, "COLUMN", "The column of the file to predict.", panel=ROWS)
    task: str | None = one_of(TASKS, None, "TASK", ".", panel=ROWS, shown="by the target's values")
    drop: list[str] | None = told(None, "COLUMN", "A column to leave out; give several.", panel=ROWS)
    keep_constant: bool = told(False, "", "Take columns that never vary, too.", panel=ROWS)
    hold_out: float = told(0.1, "SHARE", "Of the rows, to be judged on.", panel=ROWS)
    encoding: str = told("utf-8", "NAME", "Of the file's letters.", panel=ROWS)
    out: Path | None = told(None, "FOLDER", "Of the run.", shown="runs/ and the source's name")


@dataclass(frozen=True)
class Knobs:
    """Every knob of the library; None leaves it to Doxa."""

    net: str = one_of(
        NETS,
        "mlp:100,100",
        "NET",
        f"; an mlp's widths, batch_norm=true and activation=tanh ({', '.join(ACTIVATIONS)}) after a colon.",
        panel=BELIEF,
    )
    prior: str | None = one_of(PRIORS, None, "PRIOR", ", as in laplace:0.5.", panel=BELIEF, shown="N(0, 1/fan-in)")
    posterior: str = one_of(POSTERIORS, "mean_field", "POSTERIOR", ", as in mean_field:layer,scale=0.1.", panel=BELIEF)
    likelihood: str | None = one_of(LIKELIHOODS, None, "LIKELIHOOD", ".", panel=BELIEF, shown="by the target")
    random: str | None = told(None, "NAMES", "Weights that are beliefs, as in '4.*,*.bias'.", panel=BELIEF, shown="all")
    learner: str = one_of(
        LEARNERS,
        "auto",
        "LEARNER",
        "; auto tries KL weights and learns a committee.",
        panel=LEARNING,
        shown="auto; images: variational",
    )
    noise: str = one_of(NOISES, "local", "NOISE", ".", panel=LEARNING)
    kl_weight: str | None = one_of(
        KL_WEIGHTS,
        None,
        "WEIGHT",
        ", as in annealed:5, or a number; several for auto to try.",
        panel=LEARNING,
        shown="0.1; auto: 1,0.1,0.01",
    )
    samples: int = told(1, "N", "Draws of the weights a step.", panel=LEARNING, least=1)
    antithetic: bool = told(False, "", "Draws in pairs of opposite noise.", panel=LEARNING)
    dropout: float = told(0.5, "RATE", "Of the learner dropout.", panel=LEARNING)
    input_dropout: float = told(0.0, "RATE", "Of the learner dropout, for the inputs.", panel=LEARNING)
    temperature: float = told(
        1.0,
        "T",
        "Of the learner langevin: below 1 it samples a colder posterior than the true one.",
        panel=LEARNING,
        shown="1.0",
    )
    burn_in: float = told(0.5, "SHARE", "Of the steps that the learner langevin forgets.", panel=LEARNING)
    thinning: int | None = told(
        None, "N", "Steps from one sample of langevin to the next.", panel=LEARNING, shown="an epoch's", least=1
    )
    on_disk: bool = told(False, "", "Keep the samples of langevin on disk, in the run's folder.", panel=LEARNING)
    average_from: float = told(0.75, "SHARE", "Of the steps after which the learner swa averages.", panel=LEARNING)
    average_every: int | None = told(
        None,
        "N",
        "Steps from one of the weights that swa averages to the next.",
        panel=LEARNING,
        shown="an epoch's",
        least=1,
    )
    average_decay: float = told(0.999, "X", "Of the older weights in the average of the learner ema.", panel=LEARNING)
    members: int | None = told(None, "N", "An ensemble of so many.", panel=LEARNING, shown="1; auto: 3 or 5", least=1)
    same_start: bool = told(False, "", "An ensemble's members start alike.", panel=LEARNING)
    perturbation: str = one_of(
        PERTURBATIONS, "local", "NAME", ", of the learner search, as in low_rank:2.", panel=LEARNING
    )
    objective: str | None = one_of(
        OBJECTIVES, None, "NAME", ", for the learner search.", panel=LEARNING, shown="the likelihood's"
    )
    population: int = told(100, "N", "Weights tried a step by the learner search.", panel=LEARNING, least=1)
    perturbation_scale: float = told(0.05, "X", "Scale of the noise of the learner search.", panel=LEARNING)
    workers: int = told(0, "N", "Processes that evaluate for the learner search.", panel=LEARNING, least=0)
    lr: str | None = one_of(
        RATES,
        None,
        "RATE",
        ", as in step:0.01,10, or a number.",
        panel=LEARNING,
        shown="cosine:0.001; auto: 0.005",
    )
    optimiser: str | None = one_of(OPTIMISERS, None, "NAME", ", as in sgd:momentum=0.9.", panel=LEARNING, shown="adam")
    autocast: str | None = one_of(
        PRECISIONS, None, "DTYPE", ", of the net's operations.", panel=LEARNING, shown="float32"
    )
    epochs: int | None = told(
        None,
        "N",
        "Passes over the rows, at most.",
        panel=LEARNING,
        shown="20, or 4000 steps; auto: as needed",
        least=1,
    )
    batch_size: int | None = told(None, "N", "Rows a step.", panel=LEARNING, shown="128; auto: by the rows", least=1)
    patience: int | None = told(
        None, "N", "Stop after so many epochs without gain on validation rows.", panel=LEARNING, least=1
    )
    validation_samples: int = told(
        8, "N", "Draws that score an epoch, where there is patience.", panel=LEARNING, least=1
    )
    checkpoint_every: int = told(1, "N", "Epochs from one saving to the next.", panel=LEARNING, least=1)
    checkpoint_steps: int | None = told(
        None, "N", "Steps from one saving to the next within an epoch.", panel=LEARNING, least=1
    )
    draws: int = told(50, "N", "Of the weights, to judge by.", panel=LEARNING, least=1)
    seed: int = told(0, "N", "Of all that is random.", panel=LEARNING)
    device: str | None = told(None, "DEVICE", "cpu, cuda, cuda:1 …", panel=LEARNING, shown="cpu")
