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
from doxa_settings.setting import choice_field, setting_field

ROWS, BELIEF, LEARNING = "The rows", "The belief", "Learning it"  # panels of the help


@dataclass(frozen=True)
class DataSettings:
    """Where the rows come from, and where the run goes."""

    source: str | None = setting_field(
        None, "SOURCE", "A CSV or parquet file, or a data set by name.", choices=DATA, argument=True
    )
    target: str | None = setting_field(None, "COLUMN", "The column of the file to predict.", panel=ROWS)
    task: str | None = choice_field(TASKS, None, "TASK", ".", panel=ROWS, default_text="by the target's values")
    drop: list[str] | None = setting_field(None, "COLUMN", "A column to leave out; give several.", panel=ROWS)
    keep_constant: bool = setting_field(False, "", "Take columns that never vary, too.", panel=ROWS)
    hold_out: float = setting_field(0.1, "SHARE", "Of the rows, to be judged on.", panel=ROWS)
    encoding: str = setting_field("utf-8", "NAME", "Of the file's letters.", panel=ROWS)
    out: Path | None = setting_field(None, "FOLDER", "Of the run.", default_text="runs/ and the source's name")


@dataclass(frozen=True)
class LearningSettings:
    """Every knob of the library; None leaves it to Doxa."""

    net: str = choice_field(
        NETS,
        "mlp:100,100",
        "NET",
        f"; an mlp's widths, batch_norm=true and activation=tanh ({', '.join(ACTIVATIONS)}) after a colon.",
        panel=BELIEF,
    )
    prior: str | None = choice_field(
        PRIORS, None, "PRIOR", ", as in laplace:0.5.", panel=BELIEF, default_text="N(0, 1/fan-in)"
    )
    posterior: str = choice_field(
        POSTERIORS, "mean_field", "POSTERIOR", ", as in mean_field:layer,scale=0.1.", panel=BELIEF
    )
    likelihood: str | None = choice_field(
        LIKELIHOODS, None, "LIKELIHOOD", ".", panel=BELIEF, default_text="by the target"
    )
    random: str | None = setting_field(
        None, "NAMES", "Weights that are beliefs, as in '4.*,*.bias'.", panel=BELIEF, default_text="all"
    )
    learner: str = choice_field(
        LEARNERS,
        "auto",
        "LEARNER",
        "; auto tries KL weights and learns a committee.",
        panel=LEARNING,
        default_text="auto; images: variational",
    )
    noise: str = choice_field(NOISES, "local", "NOISE", ".", panel=LEARNING)
    kl_weight: str | None = choice_field(
        KL_WEIGHTS,
        None,
        "WEIGHT",
        ", as in annealed:5, or a number; several for auto to try.",
        panel=LEARNING,
        default_text="0.1; auto: 1,0.1,0.01",
    )
    samples: int = setting_field(1, "N", "Draws of the weights a step.", panel=LEARNING, minimum=1)
    antithetic: bool = setting_field(False, "", "Draws in pairs of opposite noise.", panel=LEARNING)
    dropout: float = setting_field(0.5, "RATE", "Of the learner dropout.", panel=LEARNING)
    input_dropout: float = setting_field(0.0, "RATE", "Of the learner dropout, for the inputs.", panel=LEARNING)
    temperature: float = setting_field(
        1.0,
        "T",
        "Of the learner langevin: below 1 it samples a colder posterior than the true one.",
        panel=LEARNING,
        default_text="1.0",
    )
    burn_in: float = setting_field(0.5, "SHARE", "Of the steps that the learner langevin forgets.", panel=LEARNING)
    thinning: int | None = setting_field(
        None,
        "N",
        "Steps from one sample of langevin to the next.",
        panel=LEARNING,
        default_text="an epoch's",
        minimum=1,
    )
    on_disk: bool = setting_field(
        False, "", "Keep the samples of langevin on disk, in the run's folder.", panel=LEARNING
    )
    average_from: float = setting_field(
        0.75, "SHARE", "Of the steps after which the learner swa averages.", panel=LEARNING
    )
    average_every: int | None = setting_field(
        None,
        "N",
        "Steps from one of the weights that swa averages to the next.",
        panel=LEARNING,
        default_text="an epoch's",
        minimum=1,
    )
    average_decay: float = setting_field(
        0.999, "X", "Of the older weights in the average of the learner ema.", panel=LEARNING
    )
    members: int | None = setting_field(
        None, "N", "An ensemble of so many.", panel=LEARNING, default_text="1; auto: 3 or 5", minimum=1
    )
    same_start: bool = setting_field(False, "", "An ensemble's members start alike.", panel=LEARNING)
    perturbation: str = choice_field(
        PERTURBATIONS, "local", "NAME", ", of the learner search, as in low_rank:2.", panel=LEARNING
    )
    objective: str | None = choice_field(
        OBJECTIVES, None, "NAME", ", for the learner search.", panel=LEARNING, default_text="the likelihood's"
    )
    population: int = setting_field(100, "N", "Weights tried a step by the learner search.", panel=LEARNING, minimum=1)
    perturbation_scale: float = setting_field(0.05, "X", "Scale of the noise of the learner search.", panel=LEARNING)
    workers: int = setting_field(0, "N", "Processes that evaluate for the learner search.", panel=LEARNING, minimum=0)
    lr: str | None = choice_field(
        RATES,
        None,
        "RATE",
        ", as in step:0.01,10, or a number.",
        panel=LEARNING,
        default_text="cosine:0.001; auto: 0.005",
    )
    optimiser: str | None = choice_field(
        OPTIMISERS, None, "NAME", ", as in sgd:momentum=0.9.", panel=LEARNING, default_text="adam"
    )
    autocast: str | None = choice_field(
        PRECISIONS, None, "DTYPE", ", of the net's operations.", panel=LEARNING, default_text="float32"
    )
    epochs: int | None = setting_field(
        None,
        "N",
        "Passes over the rows, at most.",
        panel=LEARNING,
        default_text="20, or 4000 steps; auto: as needed",
        minimum=1,
    )
    batch_size: int | None = setting_field(
        None, "N", "Rows a step.", panel=LEARNING, default_text="128; auto: by the rows", minimum=1
    )
    patience: int | None = setting_field(
        None, "N", "Stop after so many epochs without gain on validation rows.", panel=LEARNING, minimum=1
    )
    validation_samples: int = setting_field(
        8, "N", "Draws that score an epoch, where there is patience.", panel=LEARNING, minimum=1
    )
    checkpoint_every: int = setting_field(1, "N", "Epochs from one saving to the next.", panel=LEARNING, minimum=1)
    checkpoint_steps: int | None = setting_field(
        None, "N", "Steps from one saving to the next within an epoch.", panel=LEARNING, minimum=1
    )
    draws: int = setting_field(50, "N", "Of the weights, to judge by.", panel=LEARNING, minimum=1)
    seed: int = setting_field(0, "N", "Of all that is random.", panel=LEARNING)
    device: str | None = setting_field(None, "DEVICE", "cpu, cuda, cuda:1 …", panel=LEARNING, default_text="cpu")
