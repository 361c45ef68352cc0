"""What does one training step of a belief cost, as a ratio to the same plain net with fused Adam?

A step is forward, loss, backward and Adam on 128 rows. For each kind of net all steps, Doxa's and those of the
libraries that are installed, are taken in turn, many rounds, in one process; each ratio is the median over rounds. Slow
nets get fewer rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import doxa
from doxa.engine.contracts import Learner
from doxa_bench import comparison
from doxa_bench.contenders import LearningTask, suppress_warnings
from doxa_bench.net_kinds import BATCH, KINDS, ROWS, new_net, random_rows, split_case
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_quartiles
from doxa_bench.timing import Step, summarize_pairs, time_in_turn
from doxa_bench.trainables import GAUSSIAN, MIXTURE, BeliefTrainer, equal_scales, plain_model

ROUNDS = 31
# A kind's rounds end when the next would take it past so many seconds.
SECONDS = {"mlp1200": 130.0, "mlp400": 50.0, "lenet5": 120.0, "vgg": 240.0}

variational = doxa.learners.variational
LEARNERS: dict[str, Learner] = {
    "shared gaussian": variational(GAUSSIAN),
    "shared scale_mixture": variational(MIXTURE),
    "shared gaussian, two samples": variational(GAUSSIAN, samples=2),
    "local gaussian": variational(GAUSSIAN, doxa.noise.local),
    "flipout gaussian": variational(GAUSSIAN, doxa.noise.flipout),
    "dropout": doxa.learners.dropout(0.5),
    "point": doxa.learners.point(),
}
NOISES = ("shared gaussian", "local gaussian", "flipout gaussian")
CASES = {"mlp1200": tuple(LEARNERS), "mlp400": NOISES, "lenet5": NOISES, "vgg": NOISES}


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    result: dict[str, Any] = {
        "settings": {"batch": BATCH, "rows": ROWS, "rounds": settings.round_count(ROUNDS)},
        "steps": {},
        "rivals": {},
        "missing": {},
        "libraries": comparison.describe_all_libraries(),
    }
    for kind in CASES:
        base, doxa_steps, rivals = training_steps(kind, settings, result["missing"])
        if not doxa_steps and not rivals:
            continue

        def report_round(done: int, kind: str = kind) -> None:
            settings.progress(f"{kind}: {done} rounds")

        all_steps = doxa_steps | {f"{case}, {library}": step for (case, library), step in rivals.items()}
        limit = settings.time_limit(SECONDS.get(kind, 60.0))
        with suppress_warnings():
            timings = time_in_turn(base, all_steps, settings.round_count(ROUNDS), limit, settings.device, report_round)
        figures = {name: summarize_pairs(pairs) for name, pairs in timings.items()}
        for name, figure in figures.items():
            settings.say(f"{name}: {figure['ratio']:.2f} times the plain step")
        result["steps"] |= {case: figures[case] for case in doxa_steps}
        for case, library in rivals:
            result["rivals"].setdefault(case, {})[library] = figures[f"{case}, {library}"]
        yield result


def training_steps(
    kind: str, settings: BenchSettings, missing: dict[str, dict[str, str]]
) -> tuple[Step, dict[str, Step], dict[tuple[str, str], Step]]:
    """The plain step of a kind of net, Doxa's by case, other libraries' by case and name; what is missing is noted."""
    device = settings.device
    x, y = random_rows(kind, device=device)
    doxa_steps: dict[str, Step] = {}
    for learner_name in CASES[kind]:
        if settings.wants(f"{kind} {learner_name}"):
            trainer = BeliefTrainer(new_net(kind, device), (x, y), LEARNERS[learner_name])
            doxa_steps[f"{kind} {learner_name}"] = partial(trainer.step, trainer.batch(x, y))
    rivals: dict[tuple[str, str], Step] = {}
    net = new_net(kind, device)
    task: Callable[[str], LearningTask] = lambda noise: LearningTask(net, equal_scales(net), noise=noise)  # noqa: E731
    if any(settings.wants(f"{kind} {learner_name}") for learner_name in NOISES):
        for noise, library, offer in comparison.trainable_models(task, x, y):
            case = f"{kind} {noise} gaussian"
            if not settings.wants(case):
                continue
            if isinstance(offer, str):
                missing.setdefault(case, {})[library] = offer
            else:
                rivals[case, library] = partial(offer.step, x, y)
    return partial(plain_model(new_net(kind, device)).step, x, y), doxa_steps, rivals


def show(result: dict[str, Any]) -> list[BenchTable]:
    rows = [
        (*split_case(case), f"{r['plain_ms']:.1f}", f"{r['ms']:.1f}", f"{r['ratio']:.2f}", format_quartiles(r))
        for case, r in result["steps"].items()
    ]
    headers = ("net", "learned with", "plain, ms", "belief, ms", "ratio", "spread of the ratio")
    doxa_table = BenchTable("A step of a belief, times a step of the plain net", headers, rows, 2)
    columns = {kind: KINDS[kind].title for kind in KINDS}
    library_table = comparison.comparison_table(
        "A step of a belief in each library, times a step of the plain net", result, columns, "{kind} {noise} gaussian"
    )
    return [doxa_table] if library_table is None else [doxa_table, library_table]
