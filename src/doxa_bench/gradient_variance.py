"""How much do the gradients of a step vary with each noise, and what does a step cost?

At a belief that is held still, 784-400-400-10 on MNIST, gradients of the free energy are taken again and again, each
with another batch of 128 rows and other noise, the batches the same for all. Their variance is summed over the weights
of each layer, and held against that of shared noise with one sample, in rounds of sixteen; ratios are medians over
rounds. The plain net's gradients at the mean weights vary with the batch alone: that much no noise can do without.
Steps are timed in turn, so that variance times cost can be read: what one unit of precision costs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import doxa
from doxa.engine.contracts import Learner
from doxa_bench import comparison
from doxa_bench.contenders import LearningTask, suppress_warnings
from doxa_bench.mnist_data import LabeledRows, mnist_splits
from doxa_bench.net_kinds import BATCH, KINDS, new_net
from doxa_bench.settings import BenchSettings
from doxa_bench.tables import BenchTable, format_number, library_notes, missing_library_notes
from doxa_bench.timing import ratio_quartiles, summarize_pairs, time_in_turn
from doxa_bench.trainables import (
    GAUSSIAN,
    SCALE,
    BeliefTrainer,
    NamedTensors,
    TrainableModel,
    equal_scales,
    plain_model,
)

ROUNDS, EACH = 10, 16  # rounds, and gradients in a round
STEPS = 31  # rounds of timing
SECONDS = 60.0  # of timing
KIND = "mlp400"
EPOCHS = 3  # before the second belief is held still

variational = doxa.learners.variational
GROUND = "shared"
LEARNERS: dict[str, Learner] = {
    "shared": variational(GAUSSIAN),
    "shared, two samples": variational(GAUSSIAN, samples=2),
    "shared, antithetic pair": variational(GAUSSIAN, samples=2, antithetic=True),
    "local": variational(GAUSSIAN, doxa.noise.local),
    "flipout": variational(GAUSSIAN, doxa.noise.flipout),
}

GradientFunction = Callable[[Tensor, Tensor], dict[str, NamedTensors]]  # by "mean", and by "rho" where it is known
VarianceSums = dict[str, dict[str, float]]  # by what, and for each layer


def measure(settings: BenchSettings) -> Iterator[dict[str, Any]]:
    rounds = settings.round_count(ROUNDS)
    train, _, _ = mnist_splits(settings.device)
    result: dict[str, Any] = {
        "settings": {
            "net": KINDS[KIND].title,
            "batch": BATCH,
            "rows": len(train[0]),
            "rounds": rounds,
            "gradients": rounds * EACH,
            "start_scale": SCALE,
            "epochs": epoch_count(settings),
        },
        "points": {},
        "cost": {},
        "missing": {},
        "libraries": comparison.describe_all_libraries(),
    }
    for name, (net, scales) in held_beliefs(train, settings).items():
        contender_gradients = gradient_functions(net, scales, train, result["missing"], settings)
        result["points"][name] = measure_variances(contender_gradients, train, rounds, partial(settings.progress, name))
        settings.say(
            f"{name}: " + ", ".join(f"{k} {v['by_mean']['ratio']:.2f}" for k, v in result["points"][name].items())
        )
        yield result
    result["cost"] = measure_costs(train, settings)
    yield result


def epoch_count(settings: BenchSettings) -> int:
    return 1 if settings.quick else EPOCHS


def held_beliefs(train: LabeledRows, settings: BenchSettings) -> dict[str, tuple[nn.Module, NamedTensors]]:
    """Beliefs to hold still: as a net that weighs its means, and scales by name."""
    net = new_net(KIND, settings.device)
    initial = net, equal_scales(net)
    trainer = BeliefTrainer(
        new_net(KIND, settings.device), (train[0][:BATCH], train[1][:BATCH]), LEARNERS["local"], len(train[0])
    )
    torch.manual_seed(0)
    for epoch in range(epoch_count(settings)):
        settings.progress(f"learning, epoch {epoch + 1}")
        for index in torch.randperm(len(train[0])).to(settings.device).split(BATCH):
            trainer.step(trainer.batch(train[0][index], train[1][index]))
    belief = trainer.belief()
    scales = {slot.name: belief.posterior.scale[slot.span].view(slot.shape) for slot in belief.layout.random_slots}
    return {"at the start": initial, f"after {epoch_count(settings)} epochs": (belief.plain(), scales)}


def gradient_functions(
    net: nn.Module,
    scales: NamedTensors,
    train: LabeledRows,
    missing: dict[str, dict[str, str]],
    settings: BenchSettings,
) -> dict[str, GradientFunction]:
    """How every contender takes its gradients at one belief."""
    rows = train[0][:BATCH], train[1][:BATCH]
    functions: dict[str, GradientFunction] = {"plain net": mean_gradient_function(plain_model(net))}
    for name, learner in LEARNERS.items():
        if name == GROUND or settings.wants(name):
            belief = BeliefTrainer(net, rows, learner, len(train[0]))
            belief.set_scales(scales)
            functions[name] = mean_and_rho_gradient_function(belief)
    task: Callable[[str], LearningTask] = lambda noise: LearningTask(net, scales, len(train[0]), noise)  # noqa: E731
    for noise, library, offer in comparison.trainable_models(task, *rows):
        if isinstance(offer, str):
            missing.setdefault(noise, {})[library] = offer
        elif settings.wants(f"{noise}, {library}"):
            functions[f"{noise}, {library}"] = mean_gradient_function(offer)
    return functions


def mean_gradient_function(trainable: TrainableModel) -> GradientFunction:
    return lambda x, y: {"mean": trainable.mean_gradients(x, y)}


def mean_and_rho_gradient_function(trainer: BeliefTrainer) -> GradientFunction:
    def compute_gradients(x: Tensor, y: Tensor) -> dict[str, NamedTensors]:
        mean, rho = trainer.gradients(trainer.batch(x, y))
        return {"mean": mean, "rho": rho}

    return compute_gradients


def measure_variances(
    contender_gradients: dict[str, GradientFunction], train: LabeledRows, rounds: int, on_round: Callable[[], None]
) -> dict[str, Any]:
    """Each contender's variance by mean and by rho: absolute, and times the ground's."""
    torch.manual_seed(1)
    sums_by_contender: dict[str, list[VarianceSums]] = defaultdict(list)
    for _ in range(rounds):
        batches = torch.randint(len(train[0]), (EACH, BATCH), device=train[0].device)
        for name, gradient in contender_gradients.items():
            with suppress_warnings():
                sums_by_contender[name].append(
                    layer_variances([gradient(train[0][index], train[1][index]) for index in batches])
                )
        on_round()
    return {name: compare_variances(sums, sums_by_contender[GROUND]) for name, sums in sums_by_contender.items()}


def layer_variances(gradients: list[dict[str, NamedTensors]]) -> VarianceSums:
    """The variance over gradients, summed over the weights of each layer."""
    sums: VarianceSums = {}
    for parameter, tensors in gradients[0].items():
        layers: dict[str, float] = defaultdict(float)
        for name in tensors:
            layer = name.rpartition(".")[0]
            layers[layer] += float(torch.stack([each[parameter][name] for each in gradients]).double().var(0).sum())
        sums[parameter] = dict(layers)
    return sums


def compare_variances(contender_sums: list[VarianceSums], baseline_sums: list[VarianceSums]) -> dict[str, Any]:
    ratios_by_parameter: dict[str, Any] = {}
    for parameter in contender_sums[0]:
        ratios = [
            sum(a[parameter].values()) / sum(b[parameter].values())
            for a, b in zip(contender_sums, baseline_sums, strict=True)
        ]
        layers = {
            layer: sum(sums[parameter][layer] for sums in contender_sums) / len(contender_sums)
            for layer in contender_sums[0][parameter]
        }
        baseline_layers = {
            layer: sum(sums[parameter][layer] for sums in baseline_sums) / len(baseline_sums) for layer in layers
        }
        ratios_by_parameter[f"by_{parameter}"] = {
            **ratio_quartiles(ratios),
            "variance": sum(layers.values()),
            "layers": layers,
            "layer_ratios": {layer: layers[layer] / baseline_layers[layer] for layer in layers},
        }
    return ratios_by_parameter


def measure_costs(train: LabeledRows, settings: BenchSettings) -> dict[str, Any]:
    """A step of each, times a plain step."""
    rows = train[0][:BATCH], train[1][:BATCH]
    steps: dict[str, Callable[[], object]] = {}
    for name, learner in LEARNERS.items():
        trainer = BeliefTrainer(new_net(KIND, settings.device), rows, learner)
        steps[name] = partial(trainer.step, trainer.batch(*rows))
    net = new_net(KIND, settings.device)
    for noise, library, offer in comparison.trainable_models(
        lambda noise: LearningTask(net, equal_scales(net), noise=noise), *rows
    ):
        if not isinstance(offer, str) and settings.wants(f"{noise}, {library}"):
            steps[f"{noise}, {library}"] = partial(offer.step, *rows)
    base = partial(plain_model(new_net(KIND, settings.device)).step, *rows)
    with suppress_warnings():
        timings = time_in_turn(base, steps, settings.round_count(STEPS), settings.time_limit(SECONDS), settings.device)
    return {name: summarize_pairs(pairs) for name, pairs in timings.items()}


def show(result: dict[str, Any]) -> list[BenchTable]:
    cost, tables = result["cost"], []
    for point, contenders in result["points"].items():
        rows = []
        for name, variances in contenders.items():
            step = cost.get(name, {}).get("ratio")
            base_cost = cost.get(GROUND, {}).get("ratio")
            mean, rho = variances["by_mean"]["ratio"], variances.get("by_rho", {}).get("ratio")
            relative_cost = None if step is None or base_cost is None else step / base_cost
            prices = [None if relative_cost is None or v is None else v * relative_cost for v in (mean, rho)]
            rows.append(
                (
                    *_noise_and_library(name),
                    format_number(mean, ".3g"),
                    format_number(rho, ".3g"),
                    format_number(step),
                    *(format_number(p, ".3g") for p in prices),
                )
            )
        headers = (
            "noise",
            "who",
            "variance by mean",
            "variance by rho",
            "step, times plain",
            "by mean × cost",
            "by rho × cost",
        )
        notes = (
            [*library_notes(result), *missing_library_notes(result["missing"])]
            if point == list(result["points"])[-1]
            else []
        )
        tables.append(
            BenchTable(f"Gradients {point}, times those of shared noise with one sample", headers, rows, 2, notes)
        )
        layers = list(next(iter(contenders.values()))["by_mean"]["layer_ratios"])
        doxa_contenders = {n: c for n, c in contenders.items() if n in LEARNERS}
        by_layer = [
            (name, *(f"{c[f'by_{by}']['layer_ratios'][layer]:.3g}" for by in ("mean", "rho") for layer in layers))
            for name, c in doxa_contenders.items()
        ]
        columns = ("noise", *(f"{by}, layer {i + 1}" for by in ("mean", "rho") for i in range(len(layers))))
        tables.append(BenchTable(f"The same {point}, layer by layer", columns, by_layer))
    return tables


def _noise_and_library(name: str) -> tuple[str, str]:
    if name in LEARNERS:
        return name, "Doxa"
    noise, _, library = name.partition(", ")
    return ("batch alone", "plain net") if not library else (noise, library)
