"""A cell: one trained net with all that is judged of it, since nets themselves are too large to keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from doxa.predict.belief import Belief
from doxa.results import to_plain_json
from doxa_replicate.compact import round_floats
from doxa_replicate.contract import ReplicationOptions
from doxa_replicate.parts import cached_part
from doxa_replicate.weight_uncertainty.digits.trainings.fleets import train_fleet
from doxa_replicate.weight_uncertainty.digits.trainings.judging import (
    JUDGED_BY,
    Cell,
    error_on_way,
    judge_briefly,
    judge_cell,
)
from doxa_replicate.weight_uncertainty.digits.trainings.models import (
    AS_RUN,
    AS_WRITTEN,
    BATCH,
    HALF_OF_EPOCHS,
    MEAN_START,
    MINIBATCHES,
    MODELS,
    RHO_START,
    RUN_PART,
    WIDTHS,
    WRITTEN_PART,
    DigitModel,
    TrainingRecipe,
    build_learner,
    draw_count,
    fleet_models,
    learning_rate,
    recipe_at_size,
    seeds_of,
    start_net,
    width_at_size,
)
from doxa_replicate.weight_uncertainty.digits.trainings.rows import load_digits
from doxa_replicate.weight_uncertainty.last_minibatch import LowestLoss
from doxa_replicate.weight_uncertainty.matmul import training_matmul

WATCH_EVERY = 10  # epochs from one point of a learning curve to the next


def cells(
    options: ReplicationOptions,
    name: str,
    width: int,
    recipe: TrainingRecipe = AS_WRITTEN,
    part: str = WRITTEN_PART,
    model: DigitModel | None = None,
) -> list[Cell]:
    """The cells of a model at a width, one for each seed; those of a family are trained together, and only once.

    `model` is another of the same name, with a prior that was chosen.
    """
    fleet_names, sized_recipe = fleet_models(name, width, recipe.at_draws), recipe_at_size(options, recipe)
    models = {member_name: MODELS[member_name] if model is None else model for member_name in fleet_names}
    settings = {
        "models": {
            member_name: [member_model.prior, member_model.dropout_rate] for member_name, member_model in models.items()
        },
        "width": width_at_size(options, width),
        "recipe": sized_recipe.key(),
        "batch": BATCH,
        "start": [MEAN_START, RHO_START],
        "draws": draw_count(options),
        "judged": JUDGED_BY,
        "watched": WATCH_EVERY,
        "device": options.device or "cpu",
        "matmul": training_matmul(options),
    }
    part_name = f"mnist-{part}-{fleet_names[0]}-{width}"
    cells_of_seeds: list[Cell] = []
    for seeds in seed_groups(seeds_of(options), width):
        members = [(member_name, seed) for member_name in fleet_names for seed in seeds]
        make = partial(_train_cells, options, models, members, width, sized_recipe)
        cells_of_seeds += cached_part(options, part_name, settings | {"members": members}, make)[name]
    return cells_of_seeds


def seed_groups(seeds: Sequence[int], width: int) -> list[list[int]]:
    """Seeds that are trained as one part: five, and of the widest nets three and two, so that each takes minutes.

    More seeds leave earlier groups as they are: what was kept of them is found again.
    """
    fives = [list(seeds[first : first + 5]) for first in range(0, len(seeds), 5)]
    if width < WIDTHS[-1]:
        return fives
    return [group for five in fives for group in (five[:3], five[3:]) if group]


def cells_as_run(options: ReplicationOptions, name: str, width: int) -> list[Cell]:
    """The cells of a model as the authors trained it: point estimates as written, beliefs with halving KL shares."""
    if not MODELS[name].is_belief:
        return cells(options, name, width)
    return cells(options, name, width, AS_RUN, RUN_PART)


@dataclass(eq=False)
class TrainingWatch:
    """The test error on the way, of the widest nets; and nets half-way, and as the authors stored them by then."""

    options: ReplicationOptions
    models: Mapping[str, DigitModel]
    is_widest: bool
    half: int  # epochs
    every: int  # epochs from one test error to the next
    halfway: dict[Any, Cell] = field(default_factory=dict)
    stored: dict[Any, Cell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.keeper = LowestLoss(BATCH, MINIBATCHES, until=self.half)

    def __call__(self, beliefs: list[Belief]) -> list[Mapping[str, float]]:
        self.keeper(beliefs)
        rows: list[Mapping[str, float]] = []
        for belief in beliefs:
            epoch, model = len(belief.record.history), self._model(belief)
            if epoch == self.half:
                self.halfway[label(belief)] = judge_briefly(self.options, model, belief)
                self.stored[label(belief)] = judge_briefly(self.options, model, self.keeper.kept(belief))
            is_due = self.is_widest and (epoch == 1 or epoch % self.every == 0)
            rows.append({"test_error": error_on_way(self.options, model, belief)} if is_due else {})
        return rows

    def _model(self, belief: Belief) -> DigitModel:
        return self.models[label(belief)[0]]


def label(belief: Belief) -> tuple[str, int]:
    """What tells the members of a fleet apart while they are watched."""
    return repr(belief.prior), belief.record.settings["seed"]


def _train_cells(
    options: ReplicationOptions,
    models: Mapping[str, DigitModel],
    members: Sequence[tuple[str, int]],
    width: int,
    recipe: TrainingRecipe,
) -> dict[str, list[Cell]]:
    options.say(f"MNIST, {', '.join(models)}, {width} units, {recipe.epochs} epochs: {len(members)} nets")
    learners = {name: build_learner(model, recipe) for name, model in models.items()}
    watch = TrainingWatch(
        options,
        {repr(learners[name].prior): model for name, model in models.items()},
        is_widest=width == WIDTHS[-1],
        half=min(HALF_OF_EPOCHS, recipe.epochs // 2),
        every=options.by_size(2, WATCH_EVERY),
    )
    beliefs = train_fleet(
        options,
        [start_net(options, width, seed) for _, seed in members],
        load_digits(options).train,
        learners=[learners[name] for name, _ in members],
        seeds=[seed for _, seed in members],
        lr=learning_rate(recipe),
        epochs=recipe.epochs,
        watch=watch,
    )
    cells_by_name: dict[str, list[Cell]] = {}
    for (name, seed), belief in zip(members, beliefs, strict=True):
        key = label(belief)
        cells_by_name.setdefault(name, []).append(
            {
                "seed": seed,
                **judge_cell(options, models[name], width, belief),
                "halfway": watch.halfway[key],
                "stored": watch.stored[key],
            }
        )
    # Parts are committed until all are there: curves and densities as precise as any chart shows them.
    rounded: dict[str, list[Cell]] = round_floats(to_plain_json(cells_by_name))
    return rounded
