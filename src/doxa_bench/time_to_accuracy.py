"""How long does a belief about MNIST take to an error and an NLL that were set beforehand?

784-400-400-10, batch 128, Adam with rate 1e-3, prior N(0, 1), the true free energy, all from the same net with the same
scale; one seed. All learn in turn, a quarter of an epoch each, from the same batches, so that the machine's moods are
shared; after each turn 10,000 validation rows are predicted by four draws, which is not counted. Who has reached both
targets leaves. The seconds of training until a target was first met are given, or how far a contender came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import doxa
from doxa_bench import comparison
from doxa_bench.contenders import LearningTask, suppress_warnings
from doxa_bench.mnist_data import LabeledRows, mnist_splits
from doxa_bench.net_kinds import BATCH, KINDS, new_net
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_number, library_notes, missing_library_notes
from doxa_bench.timing import seconds
from doxa_bench.trainables import GAUSSIAN, SCALE, BeliefTrainer, TrainableModel, equal_scales, plain_model

KIND = "mlp400"
TARGETS = {"error": 0.025, "nll": 0.09}
DRAWS = 4  # of the weights, for the validation rows
QUARTERS = 40  # of an epoch: ten epochs at most
SECONDS = 660.0  # in all


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    train, validation, _ = mnist_splits(settings.device)
    result: dict[str, Any] = {
        "settings": {
            "net": KINDS[KIND].title,
            "batch": BATCH,
            "rows": len(train[0]),
            "validation_rows": len(validation[0]),
            "validation_draws": DRAWS,
            "start_scale": SCALE,
            "targets": TARGETS,
            "most_epochs": settings.round_count(QUARTERS) / 4,
            "most_seconds": settings.time_limit(SECONDS),
        },
        "contenders": {},
        "missing": {},
        "libraries": comparison.describe_all_libraries(),
    }
    trainables = contenders(train, result["missing"], settings)
    result["contenders"] = {name: {"seconds": 0.0, "steps": 0, "history": []} for name in trainables}
    start = time.perf_counter()
    for quarter in range(settings.round_count(QUARTERS)):
        batches = quarter_of_an_epoch(len(train[0]), quarter)
        for name in list(trainables):
            if time.perf_counter() - start > settings.time_limit(SECONDS):
                return
            progress = result["contenders"][name]
            with suppress_warnings():
                turn_seconds = seconds(training_turn(trainables[name], train, batches), 1, settings.device)
                scores = score_predictions(trainables[name], validation)
            progress["seconds"] += turn_seconds
            progress["steps"] += len(batches)
            progress["history"].append({"seconds": progress["seconds"], "steps": progress["steps"], **scores})
            for target, threshold in TARGETS.items():
                if scores[target] <= threshold and target not in progress:
                    progress[target] = {"seconds": progress["seconds"], "steps": progress["steps"]}
                    settings.say(f"{name}: {target} of {scores[target]:.4f} after {progress['seconds']:.1f} s")
            settings.progress(f"{name}: error {scores['error']:.4f}, NLL {scores['nll']:.4f}")
            if all(target in progress for target in TARGETS):
                del trainables[name]
        yield result
        if not trainables:
            return


def contenders(
    train: LabeledRows, missing: dict[str, dict[str, str]], settings: BenchSettings
) -> dict[str, TrainableModel]:
    """Who learns, by name."""
    rows, device = (train[0][:BATCH], train[1][:BATCH]), settings.device
    trainables = {"plain net": plain_model(new_net(KIND, device))}
    for noise in comparison.NOISES:
        learner = doxa.learners.variational(GAUSSIAN, doxa.noise.TABLE[noise])
        trainables[f"{noise}, Doxa"] = BeliefTrainer(
            new_net(KIND, device), rows, learner, len(train[0])
        ).trainable_model()
    net = new_net(KIND, device)
    task: Callable[[str], LearningTask] = lambda noise: LearningTask(net, equal_scales(net), len(train[0]), noise)  # noqa: E731
    for noise, library, offer in comparison.trainable_models(task, *rows):
        if isinstance(offer, str):
            missing.setdefault(noise, {})[library] = offer
        else:
            trainables[f"{noise}, {library}"] = offer
    # The first run of many things is their slowest, and none that would be learned from.
    for trainable in trainables.values():
        with suppress_warnings():
            trainable.mean_gradients(*rows)
    return {name: trainable for name, trainable in trainables.items() if settings.wants(name)}


def quarter_of_an_epoch(rows: int, quarter: int) -> tuple[Tensor, ...]:
    """Indices of batches, the same for all."""
    generator = torch.Generator().manual_seed(quarter // 4)
    batches = torch.randperm(rows, generator=generator).split(BATCH)
    share = max(1, len(batches) // 4)
    return batches[quarter % 4 * share :][:share]


def training_turn(trainable: TrainableModel, train: LabeledRows, batches: tuple[Tensor, ...]) -> Callable[[], None]:
    def run() -> None:
        for index in batches:
            rows = index.to(train[0].device)
            trainable.step(train[0][rows], train[1][rows])

    return run


@torch.no_grad()
def score_predictions(trainable: TrainableModel, validation: LabeledRows) -> dict[str, float]:
    """Error and NLL of the averaged probabilities."""
    x, y = validation
    p = trainable.outputs(x, DRAWS).detach().double().softmax(-1).mean(0)
    return {"error": float((p.argmax(-1) != y).double().mean()), "nll": float(F.nll_loss(p.log(), y))}


def show(result: dict[str, Any]) -> list[BenchTable]:
    targets = result["settings"]["targets"]
    rows = []
    for name, contender in result["contenders"].items():
        if not contender["history"]:
            continue
        noise, _, who = name.partition(", ")
        reached = [format_number(contender.get(target, {}).get("seconds"), ".1f") for target in targets]
        best = [f"{min(evaluation[target] for evaluation in contender['history']):.4f}" for target in targets]
        steps = max((contender[target]["steps"] for target in targets if target in contender), default=None)
        step_ms = 1e3 * contender["seconds"] / contender["steps"]
        rows.append(
            (
                noise if who else "none",
                who or name,
                *reached,
                format_number(steps, "d"),
                f"{step_ms:.1f}",
                f"{contender['seconds']:.1f}",
                *best,
            )
        )
    headers = (
        *("noise", "who", f"s to error ≤ {targets['error']:.1%}", f"s to NLL ≤ {targets['nll']:g}"),
        *("steps to the last", "ms a step", "s trained", "best error", "best NLL"),
    )
    notes = [
        "A dash: not reached in the seconds trained.",
        *library_notes(result),
        *missing_library_notes(result["missing"]),
    ]
    return [BenchTable("Seconds of training until a target was first met on validation rows", headers, rows, 2, notes)]
