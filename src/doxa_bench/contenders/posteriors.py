"""posteriors: a log-posterior as a function of weights, transformed step by step."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from doxa_bench.contenders.library import LearningTask, Library
from doxa_bench.trainables import RATE, NamedTensors, TrainableModel, chunks


def build_trainable(task: LearningTask) -> TrainableModel:
    import posteriors
    import torchopt

    net, rows = task.net, task.rows
    # torch.func cannot differentiate through running statistics; this is torch's own way to do without them.
    torch.func.replace_all_batch_norm_modules_(net)

    def log_posterior(weights: NamedTensors, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        logits = torch.func.functional_call(net, weights, batch[0])
        prior = posteriors.diag_normal_log_prob(weights) / rows
        return prior - F.cross_entropy(logits, batch[1]), logits

    start = {name: task.scales[name].log() for name, _ in net.named_parameters()}
    # Its default sticks the landing: quiet at the optimum, but far noisier than this wherever a run begins.
    transform = posteriors.vi.diag.build(
        log_posterior, torchopt.adam(lr=RATE), 1 / rows, n_samples=task.samples, stl=False, init_log_sds=start
    )
    state = transform.init(dict(net.named_parameters()))

    def step(x: Tensor, y: Tensor) -> None:
        nonlocal state
        state, _ = transform.update(state, (x, y))

    @torch.no_grad()
    def outputs(x: Tensor, samples: int) -> Tensor:
        net.eval()
        draws = []
        for _ in range(samples):
            weights = posteriors.vi.diag.sample(state)
            draws.append(torch.cat([torch.func.functional_call(net, weights, part) for part in chunks(x)]))
        net.train()
        return torch.stack(draws)

    def mean_gradients(x: Tensor, y: Tensor) -> NamedTensors:
        def loss(mean: NamedTensors) -> Tensor:
            scales = {name: log.detach().exp() for name, log in state.log_sd_diag.items()}
            return posteriors.vi.diag.nelbo(mean, scales, (x, y), log_posterior, 1 / rows, task.samples, stl=False)[0]

        return torch.func.grad(loss)({name: mean.detach() for name, mean in state.params.items()})

    return TrainableModel(step, outputs, mean_gradients)


LIBRARY = Library("posteriors", ("shared",), "one draw, right; its sticking the landing is turned off", build_trainable)
