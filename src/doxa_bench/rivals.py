"""One training step of a mean-field Gaussian belief, as the users of other libraries write it.

RIVALS maps the name of a library, as the package registry knows it, to a function

    (kind, x, y, rows, noise="shared", samples=1) -> (step, reason)

A step is forward, negative log-likelihood, KL/rows, backward and Adam. Where the library is not installed or cannot do
what is asked, step is None and reason says why. Every weight has the prior N(0, 1). Each library gets its best: fused
Adam wherever it leaves the choice of optimiser, and the KL in closed form wherever it has one. BatchNorm's own weights
stay plain numbers, as in each library's examples, but for posteriors, which knows no layers.
"""

from __future__ import annotations

import functools
import importlib.metadata
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from doxa import nets
from doxa_bench.vgg import vgg

RATE = 1e-3
NOISES = ("shared", "local", "flipout")
Step = Callable[[], None]
Offer = tuple[Step | None, str]

# Each kind of net and the shape of one of its inputs.
KINDS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp1200": (lambda: nets.mlp(784, (1200, 1200), 10), (784,)),
    "mlp400": (lambda: nets.mlp(784, (400, 400), 10), (784,)),
    "lenet5": (nets.lenet5, (1, 28, 28)),
    "vgg": (vgg, (3, 32, 32)),
}

# What every library makes of KL(q‖p)/rows.
KL = {
    "torchbnn": "closed form, right",
    "bayesian-torch": "closed form, but the mean over each tensor's weights where the sum is due: far too small",
    "blitz-bayesian-pytorch": "one draw; 1e-6 is added to the prior's density, which bounds it",
    "torch-uncertainty": "one draw, divided by the number of layers; the weight given here undoes that",
    "posteriors": "one draw, right",
    "tyxe": "closed form, right",
}


class Maker(Protocol):
    """Makes the step of one library; raises where the library cannot."""

    def __call__(self, net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step: ...


class Rival(Protocol):
    def __call__(self, kind: str, x: Tensor, y: Tensor, rows: int, noise: str = ..., samples: int = ...) -> Offer: ...


def version(name: str) -> str | None:
    """The installed version of a library, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def rival(name: str, make: Maker, *noises: str) -> Rival:
    """What the table holds: refusals in words, and one step tried, so that what cannot run is known at once."""

    def offer(kind: str, x: Tensor, y: Tensor, rows: int, noise: str = "shared", samples: int = 1) -> Offer:
        if noise not in noises:
            return None, f"has no {noise} noise"
        if version(name) is None:
            return None, "is not installed"
        try:
            with quiet():
                step = make(KINDS[kind][0]().to(x.device), x, y, rows, noise, samples)
                step()
        except Exception as error:
            return None, f"fails: {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"
        return step, ""

    return offer


@contextmanager
def quiet() -> Iterator[None]:
    """Without the libraries' warnings, which are about themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def descent(parameters: Iterable[Tensor], loss: Callable[[], Tensor]) -> Step:
    """The step of every library that leaves the loop to its user."""
    optimiser = torch.optim.Adam(parameters, RATE, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        loss().backward()
        optimiser.step()

    return step


def rebuilt(
    net: nn.Module, linear: Callable[[nn.Linear], nn.Module], conv: Callable[[nn.Conv2d, dict[str, Any]], nn.Module]
) -> list[nn.Module]:
    """The layers of a sequential net, the linear and convolutional ones in a library's own form."""
    layers: list[nn.Module] = []
    for layer in net.children():
        if isinstance(layer, nn.Linear):
            layers.append(linear(layer))
        elif isinstance(layer, nn.Conv2d):
            # Not every library knows "same"; the padding in numbers is.
            padding = layer.kernel_size[0] // 2 if layer.padding == "same" else layer.padding[0]
            layers.append(conv(layer, {"kernel_size": layer.kernel_size, "padding": padding}))
        else:
            layers.append(layer)
    return layers


def torchbnn(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    import torchbnn as bnn

    layers = rebuilt(
        net,
        lambda m: bnn.BayesLinear(0.0, 1.0, m.in_features, m.out_features),
        lambda m, how: bnn.BayesConv2d(0.0, 1.0, m.in_channels, m.out_channels, **how),
    )
    model = nn.Sequential(*layers).to(x.device)
    divergence = bnn.BKLLoss(reduction="sum")

    def loss() -> Tensor:
        nll = sum((F.cross_entropy(model(x), y) for _ in range(samples)), torch.zeros((), device=x.device))
        return nll / samples + divergence(model) / rows

    return descent(model.parameters(), loss)


def bayesian_torch(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    from bayesian_torch.models.dnn_to_bnn import dnn_to_bnn, get_kl_loss

    settings = {
        "prior_mu": 0.0,
        "prior_sigma": 1.0,
        "posterior_mu_init": 0.0,
        "posterior_rho_init": -3.0,
        "type": {"shared": "Reparameterization", "flipout": "Flipout"}[noise],
        "moped_enable": False,
        "moped_delta": 0.5,
    }
    dnn_to_bnn(net, settings)
    net.to(x.device)

    def loss() -> Tensor:
        nll = sum((F.cross_entropy(net(x), y) for _ in range(samples)), torch.zeros((), device=x.device))
        return nll / samples + get_kl_loss(net) / rows

    return descent(net.parameters(), loss)


def blitz(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    from blitz.modules import BayesianConv2d, BayesianLinear
    from blitz.utils import variational_estimator

    @variational_estimator
    class Net(nn.Sequential):
        pass

    # Given as a distribution, the prior costs one density; the library's own mixture costs two.
    prior = torch.distributions.Normal(torch.zeros((), device=x.device), torch.ones((), device=x.device))
    layers = rebuilt(
        net,
        lambda m: BayesianLinear(m.in_features, m.out_features, prior_dist=prior),
        lambda m, how: BayesianConv2d(m.in_channels, m.out_channels, prior_dist=prior, **how),
    )
    model: Any = Net(*layers).to(x.device)
    criterion = nn.CrossEntropyLoss()
    return descent(
        model.parameters(), lambda: model.sample_elbo(x, y, criterion, samples, complexity_cost_weight=1 / rows)
    )


@functools.cache
def torchvision() -> list[object]:
    """Makes torchvision importable beside a torch without CUDA; what is returned must be kept.

    The registry's wheel of torchvision is built for CUDA. Beside another torch its operators do not load, and its
    import fails for want of two that nothing here uses: naming them is enough.
    """
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        named = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            named.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return [named]
    return []


def torch_uncertainty(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    torchvision()
    from torch_uncertainty.layers.bayesian import BayesConv2d, BayesLinear, bayesian_modules
    from torch_uncertainty.losses import ELBOLoss

    prior = {"prior_sigma_1": 1.0, "prior_sigma_2": 1.0, "prior_pi": 1.0}
    layers = rebuilt(
        net,
        lambda m: BayesLinear(m.in_features, m.out_features, **prior),
        lambda m, how: BayesConv2d(m.in_channels, m.out_channels, **how, **prior),
    )
    model = nn.Sequential(*layers).to(x.device)
    count = sum(isinstance(m, bayesian_modules) for m in model.modules())
    elbo = ELBOLoss(model, nn.CrossEntropyLoss(), kl_weight=count / rows, num_samples=samples)
    return descent(model.parameters(), lambda: elbo(x, y))


def posteriors(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    import posteriors
    import torchopt

    # torch.func cannot differentiate through running statistics; this is torch's own way to do without them.
    torch.func.replace_all_batch_norm_modules_(net)

    def log_posterior(weights: dict[str, Tensor], batch: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        logits = torch.func.functional_call(net, weights, batch[0])
        prior = posteriors.diag_normal_log_prob(weights) / rows
        return prior - F.cross_entropy(logits, batch[1]), logits

    transform = posteriors.vi.diag.build(
        log_posterior, torchopt.adam(lr=RATE), temperature=1 / rows, n_samples=samples, init_log_sds=-3.0
    )
    state = transform.init(dict(net.named_parameters()))

    def step() -> None:
        nonlocal state
        state, _ = transform.update(state, (x, y))

    return step


_names = itertools.count()


def tyxe(net: nn.Module, x: Tensor, y: Tensor, rows: int, noise: str, samples: int) -> Step:
    import pyro
    import tyxe

    normal = pyro.distributions.Normal(torch.zeros((), device=x.device), torch.ones((), device=x.device))
    prior = tyxe.priors.IIDPrior(normal, expose_all=False, hide_module_types=(nn.BatchNorm2d,))
    # Pyro keeps parameters by name for the whole process: nets of one name would share them.
    name = f"belief{next(_names)}"
    start = tyxe.guides.PretrainedInitializer.from_net(net, prefix=f"{name}.net")
    guide = functools.partial(tyxe.guides.AutoNormal, init_loc_fn=start, init_scale=0.05)
    likelihood = tyxe.likelihoods.Categorical(dataset_size=rows)
    belief = tyxe.VariationalBNN(net, prior, likelihood, guide, name=name)
    optimiser = pyro.optim.Adam({"lr": RATE, "fused": True})
    ways: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "shared": nullcontext,
        "local": tyxe.poutine.local_reparameterization,
        "flipout": tyxe.poutine.flipout,
    }

    def step() -> None:
        with ways[noise]():
            belief.fit([(x, y)], optimiser, 1, num_particles=samples)

    return step


RIVALS: dict[str, Rival] = {
    "torchbnn": rival("torchbnn", torchbnn, "shared"),
    "bayesian-torch": rival("bayesian-torch", bayesian_torch, "shared", "flipout"),
    "blitz-bayesian-pytorch": rival("blitz-bayesian-pytorch", blitz, "shared"),
    "torch-uncertainty": rival("torch-uncertainty", torch_uncertainty, "shared"),
    "posteriors": rival("posteriors", posteriors, "shared"),
    "tyxe": rival("tyxe", tyxe, "shared", "local", "flipout"),
}
