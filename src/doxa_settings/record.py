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

# Panels of the help.
DATA_PANEL, MODEL, TRAINING, LEARNER, SEARCH = (
    "Data",
    "Model",
    "Training",
    "Settings of one learner",
    "Search without gradients",
)


@dataclass(frozen=True)
class DataSettings:
    """Where the rows come from, and where the run goes."""

    source: str | None = setting_field(
        None,
        "SOURCE",
        "Learn from this CSV or parquet file, or from a data set of doxa data list; the settings may name it instead.",
        choices=DATA,
        argument=True,
    )
    target: str | None = setting_field(
        None,
        "COLUMN",
        "Predict this column; a table needs it, and a named data set has a target of its own.",
        panel=DATA_PANEL,
    )
    task: str | None = choice_field(
        TASKS,
        None,
        "TASK",
        "Take the target as a quantity or as classes",
        panel=DATA_PANEL,
        default_text="by the target's values",
    )
    drop: list[str] | None = setting_field(
        None,
        "COLUMN",
        "Leave out this column; repeat the option to leave out several. Without it every column is used.",
        panel=DATA_PANEL,
    )
    keep_constant: bool = setting_field(
        False, "", "Keep columns with one value in every row; without it they are an error.", panel=DATA_PANEL
    )
    hold_out: float = setting_field(
        0.1, "SHARE", "Hold out this share of the rows, between 0 and 1, to judge the belief on.", panel=DATA_PANEL
    )
    encoding: str = setting_field(
        "utf-8", "NAME", "Read a CSV file in this encoding, as in latin-1 or utf-16.", panel=DATA_PANEL
    )
    out: Path | None = setting_field(
        None,
        "FOLDER",
        "Write the run to this folder, which must be new or empty.",
        default_text="runs/ and the source's name",
    )


@dataclass(frozen=True)
class LearningSettings:
    """Every knob of the library; None leaves it to Doxa."""

    net: str = choice_field(
        NETS,
        "mlp:100,100",
        "NET",
        "Learn this net",
        "; an mlp takes hidden widths, batch_norm=true and an activation "
        f"({', '.join(ACTIVATIONS)}), as in mlp:64,64,activation=tanh",
        panel=MODEL,
        default_text="mlp:100,100; 10,000 images: mlp:400,400",
    )
    prior: str | None = choice_field(
        PRIORS,
        None,
        "PRIOR",
        "Set the prior on the weights",
        ", as in laplace:0.5",
        panel=MODEL,
        default_text="N(0, 1/fan-in); images: gaussian:1",
    )
    posterior: str = choice_field(
        POSTERIORS,
        "mean_field",
        "POSTERIOR",
        "Learn this posterior, with --learner variational",
        ", as in mean_field:layer,scale=0.1",
        panel=MODEL,
        default_text="mean_field; images: scale by the rate",
    )
    likelihood: str | None = choice_field(
        LIKELIHOODS, None, "LIKELIHOOD", "Set the target's likelihood", panel=MODEL, default_text="by the target"
    )
    random: str | None = setting_field(
        None,
        "NAMES",
        "Make only weights of these names uncertain, as in '*.bias'; the others are learned as plain numbers.",
        panel=MODEL,
        default_text="all",
    )
    learner: str = choice_field(
        LEARNERS,
        "auto",
        "LEARNER",
        "Choose how to learn",
        "; auto tries KL weights and learns a committee",
        panel=TRAINING,
        default_text="auto; images: variational",
    )
    noise: str = choice_field(
        NOISES,
        "local",
        "NOISE",
        "Draw weight noise in this way, with --learner auto or variational",
        panel=TRAINING,
    )
    kl_weight: str | None = choice_field(
        KL_WEIGHTS,
        None,
        "WEIGHT",
        "Weigh the KL term by a number or a schedule",
        ", as in annealed:5; auto tries several, as in 1,0.1,geometric",
        panel=TRAINING,
        default_text="0.1; images: geometric; auto: 1,0.1,0.01,geometric",
    )
    samples: int = setting_field(
        1,
        "N",
        "With --learner variational, average over this many draws of the weights in each step.",
        panel=LEARNER,
        minimum=1,
    )
    antithetic: bool = setting_field(
        False,
        "",
        "With --learner variational, make draws in pairs of opposite noise; --samples must be even.",
        panel=LEARNER,
    )
    dropout: float = setting_field(
        0.5,
        "RATE",
        "With --learner dropout, drop inputs of each layer with this probability, 0 to below 1.",
        panel=LEARNER,
    )
    input_dropout: float = setting_field(
        0.0,
        "RATE",
        "With --learner dropout, drop inputs of the net with this probability, 0 to below 1.",
        panel=LEARNER,
    )
    temperature: float = setting_field(
        1.0,
        "T",
        "With --learner langevin, sample at this temperature, from 0 up; 1 is the true posterior.",
        panel=LEARNER,
        default_text="1.0",
    )
    burn_in: float = setting_field(
        0.5, "SHARE", "With --learner langevin, discard this first share of the steps, 0 to below 1.", panel=LEARNER
    )
    thinning: int | None = setting_field(
        None,
        "N",
        "With --learner langevin, keep one sample each time this many steps are done.",
        panel=LEARNER,
        default_text="one an epoch",
        minimum=1,
    )
    on_disk: bool = setting_field(
        False, "", "With --learner langevin, keep the samples in the run's folder, not in memory.", panel=LEARNER
    )
    average_from: float = setting_field(
        0.75, "SHARE", "With --learner swa, average weights after this share of the steps, 0 to below 1.", panel=LEARNER
    )
    average_every: int | None = setting_field(
        None,
        "N",
        "With --learner swa, add the weights to the average each time this many steps are done.",
        panel=LEARNER,
        default_text="once an epoch",
        minimum=1,
    )
    average_decay: float = setting_field(
        0.999, "X", "With --learner ema, keep this share of the average at each step, 0 to below 1.", panel=LEARNER
    )
    members: int | None = setting_field(
        None,
        "N",
        "Learn an ensemble of this many members.",
        panel=TRAINING,
        default_text="1; auto: 3 or 5",
        minimum=1,
        maximum=10_000,
    )
    same_start: bool = setting_field(
        False,
        "",
        "Start the members of an ensemble from the same weights; without it each has its own.",
        panel=TRAINING,
    )
    perturbation: str = choice_field(
        PERTURBATIONS,
        "local",
        "NAME",
        "Set how the learner search perturbs the weights",
        ", as in low_rank:2",
        panel=SEARCH,
    )
    objective: str | None = choice_field(
        OBJECTIVES,
        None,
        "NAME",
        "Let the learner search optimise this score of classes",
        panel=SEARCH,
        default_text="the likelihood",
    )
    population: int = setting_field(
        100,
        "N",
        "Let the learner search try this many perturbations in each step, at least 2.",
        panel=SEARCH,
        minimum=1,
        maximum=10_000_000,
    )
    perturbation_scale: float = setting_field(
        0.05, "X", "Let the learner search perturb by noise of this standard deviation, above 0.", panel=SEARCH
    )
    workers: int = setting_field(
        0,
        "N",
        "Let the learner search evaluate in this many processes; 0 evaluates in this one.",
        panel=SEARCH,
        minimum=0,
    )
    lr: str | None = choice_field(
        RATES,
        None,
        "RATE",
        "Set the learning rate or its schedule",
        ", as in 0.01 or step:0.01,10",
        panel=TRAINING,
        default_text="cosine:0.001; images: cosine:0.002; auto: 0.005",
    )
    optimiser: str | None = choice_field(
        OPTIMISERS,
        None,
        "NAME",
        "Train by this optimiser",
        ", as in sgd:momentum=0.9",
        panel=TRAINING,
        default_text="adam",
    )
    autocast: str | None = choice_field(
        PRECISIONS,
        None,
        "DTYPE",
        "Run the net's operations in this precision",
        panel=TRAINING,
        default_text="float32",
    )
    epochs: int | None = setting_field(
        None,
        "N",
        "Pass over the training rows this many times at most.",
        panel=TRAINING,
        default_text="20, or 4000 steps; auto: as needed",
        minimum=1,
    )
    batch_size: int | None = setting_field(
        None,
        "N",
        "Use this many rows in each training step.",
        panel=TRAINING,
        default_text="128; auto: by the rows",
        minimum=1,
    )
    patience: int | None = setting_field(
        None,
        "N",
        "Stop after this many epochs without gain on validation rows; without it every epoch is run.",
        panel=TRAINING,
        minimum=1,
    )
    validation_samples: int = setting_field(
        8,
        "N",
        "Score epochs on validation rows, where there is patience, by this many draws.",
        panel=TRAINING,
        minimum=1,
    )
    checkpoint_every: int = setting_field(
        1, "N", "Save a checkpoint each time this many epochs are done.", panel=TRAINING, minimum=1
    )
    checkpoint_steps: int | None = setting_field(
        None,
        "N",
        "Save a checkpoint also each time this many steps are done; without it only between epochs.",
        panel=TRAINING,
        minimum=1,
    )
    draws: int = setting_field(
        50, "N", "Judge the belief by this many draws of the weights.", panel=TRAINING, minimum=1
    )
    seed: int = setting_field(
        0, "N", "Set the seed of all randomness, a whole number; the same seed repeats a run.", panel=TRAINING
    )
    device: str | None = setting_field(
        None, "DEVICE", "Compute on this device, as in cpu, cuda or cuda:1.", panel=TRAINING, default_text="cpu"
    )
