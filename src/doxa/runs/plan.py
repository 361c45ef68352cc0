"""What is asked of a run: every knob, by words."""

from __future__ import annotations

import inspect
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import torch
from torch import nn

from doxa import kl_weights, likelihoods, nets, noise, optimisers, priors, rates
from doxa.auto import by_fan_in
from doxa.contracts import Likelihood, Prior, Schedule
from doxa.engine.contracts import Learner
from doxa.errors import BadInput, did_you_mean, require_whole, shorten
from doxa.learners.ensemble import Ensemble
from doxa.posteriors.mean_field import Family
from doxa.runs.learner_call import LearnerCall, parse_learner
from doxa.runs.parsing import (
    build_member,
    call_member,
    find_member,
    has_member,
    parse_arguments,
    parse_literal,
    split_call,
)
from doxa.runs.training_data import TrainingData
from doxa.search.engines.in_process import InProcess
from doxa.search.engines.pool import Pool
from doxa.search.learner import VariationalOptimisation
from doxa.search.objectives import f1, zero_one
from doxa.search.perturbations.local import Local
from doxa.search.perturbations.low_rank import LowRank
from doxa.search.perturbations.weight_space import WeightSpace
from doxa.training.options import Optimiser
from doxa.weights.layout import Chooser
from doxa_settings.names import NOT_OPTIMISERS_BY_WORDS
from doxa_settings.record import LearningSettings
from doxa_settings.setting import type_name

Unit = float | list[float]  # for all outputs, or for each
LEAST = likelihoods.gaussian_per_input.least

PERTURBATIONS = {"local": Local, "weight_space": WeightSpace, "low_rank": LowRank}
OBJECTIVES: dict[str, dict[str, Any]] = {"zero_one": {"minimise": zero_one}, "f1": {"maximise": f1}}
SEEDS = range(-(2**63), 2**64)  # that torch takes
OPTIMISERS: dict[str, Callable[..., Any]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
}


DOXA_OPTIMISERS: dict[str, Callable[..., Optimiser]] = {"adam": optimisers.adam, "sgd": optimisers.sgd}
PRECISIONS = {"bfloat16": torch.bfloat16, "float16": torch.float16}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "elu": nn.ELU,
    "softplus": nn.Softplus,
    "sigmoid": nn.Sigmoid,
}


@dataclass(frozen=True)
class Plan(LearningSettings):
    """What is asked of a run, by words, and what the words make; a setting that is None is left to Doxa."""

    def __post_init__(self) -> None:
        if require_whole("seed", self.seed, least=None) not in SEEDS:
            raise BadInput(f"seed must lie between {SEEDS[0]} and {SEEDS[-1]}, got {self.seed}")

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Plan:
        """From a table of settings; an unknown or misspelt one is an error."""
        fields_by_name = {f.name: f for f in fields(cls)}
        for name, value in settings.items():
            if name not in fields_by_name:
                raise BadInput(f"there is no setting {name!r}{did_you_mean(name, fields_by_name, most=40)}")
            annotation = str(fields_by_name[name].type)
            if value is None and "None" not in annotation:
                raise BadInput(f"the setting {name} must not be empty")
            fits = {
                "str": lambda v: isinstance(v, str | int | float) and not isinstance(v, bool),
                "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
                "float": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
                "bool": lambda v: isinstance(v, bool),
            }[type_name(fields_by_name[name])]
            if value is not None and not fits(value):
                raise BadInput(f"the setting {name} must be of type {annotation}; got {value!r}")
        text_fields = {name for name, field in fields_by_name.items() if type_name(field) == "str"}
        typed_settings: dict[str, Any] = {
            k: str(v) if k in text_fields and v is not None else v for k, v in settings.items()
        }
        return cls(**typed_settings)

    def state(self) -> dict[str, Any]:
        """Every setting by name, as JSON takes them."""
        return asdict(self)

    def require_used(self) -> None:
        """Refuse an unknown learner, a knob that it would not turn, and counts of nothing."""
        call = parse_learner(self.learner)
        plan = replace(self, **call.knob_values(self))
        for name in call.unused:
            value = getattr(self, name)
            if value not in (getattr(Plan, name), "cpu"):
                raise BadInput(f"{name} is of no use to the learner {call.name}; {call.advice(name, value)}")
        if call.has_optional_prior and plan.kl_weight is not None and plan.prior is None:
            raise BadInput(f"kl_weight weighs a prior, and the learner {call.name} has none: give it one, or neither")
        if self.same_start and (self.members or 1) < 2:
            raise BadInput("same_start is of no use without several members; give members, or leave it out")
        if self.validation_samples != Plan.validation_samples and self.patience is None:
            raise BadInput("validation_samples is of no use without patience; give patience, or leave it out")
        for field in fields(plan):
            value, setting = getattr(plan, field.name), field.metadata["setting"]
            if value is not None and setting.minimum is not None:
                require_whole(field.name, value, setting.minimum, setting.maximum)

    def output_units(self, training_data: TrainingData) -> tuple[Unit, Unit]:
        """Centre and scale of the net's outputs: those of the target, but for a noise, which its likelihood scales."""
        if training_data.classes:
            return 0.0, 1.0
        centre, scale = float(training_data.train[1].mean()), _target_spread(training_data)
        others = self.outputs_per_target - 1
        return ([centre, *others * [0.0]], [scale, *others * [1.0]]) if others else (centre, scale)

    def architecture(self, training_data: TrainingData, centre: Unit = 0.0, scale: Unit = 1.0) -> nn.Module:
        """The net for the data's inputs and outputs; a regression's speaks the target's units."""
        net = build_net(
            self.net, tuple(training_data.train[0].shape[1:]), training_data.outputs * self.outputs_per_target
        )
        return net if training_data.classes else nets.rescaled(net, centre, scale)

    @property
    def outputs_per_target(self) -> int:
        """Outputs of the net for each of the target, as the likelihood asks: two where its noise is one of them."""
        name, _ = split_call(self.likelihood or "")
        likelihood = likelihoods.TABLE[name] if name and has_member(name, likelihoods.TABLE) else None
        return int(getattr(likelihood, "outputs_per_target", 1))

    def build_likelihood(self, training_data: TrainingData) -> Likelihood:
        """The likelihood named, or the one that the target asks for: classes, or noise of a learned size.

        What is not said of a noise is taken from the spread of the targets.
        """
        target_spread = _target_spread(training_data)
        by_spread = {
            "gaussian_learned": lambda start=0.5 * target_spread: likelihoods.gaussian_learned(start),
            "gaussian_per_input": lambda least=LEAST, scale=target_spread: likelihoods.gaussian_per_input(least, scale),
        }
        text = self.likelihood or ("categorical" if training_data.classes else "gaussian_learned")
        likelihood: Likelihood = build_member(text, ChainMap(by_spread, likelihoods.TABLE), "likelihood")
        if likelihood.discrete is not bool(training_data.classes):
            raise BadInput(f"the likelihood {text} does not fit a {training_data.task}")
        if isinstance(likelihood, likelihoods.bernoulli) and not training_data.has_binary_output:
            raise BadInput(
                f"the likelihood bernoulli tells two classes apart; {shorten(training_data.target)!r} has "
                f"{len(training_data.classes):,}: use categorical"
            )
        return likelihood

    def adapt_data(self, training_data: TrainingData) -> TrainingData:
        """The data as the likelihood takes it: for bernoulli, two classes as yes and no."""
        if (self.likelihood or "").startswith("bernoulli") and len(training_data.classes) == 2:
            return training_data.with_binary_targets()
        return training_data

    def build_prior(self, net: nn.Module) -> Prior:
        """The prior named, or N(0, 1/fan-in)."""
        return (
            by_fan_in(net, self.chooser(net)) if self.prior is None else build_member(self.prior, priors.TABLE, "prior")
        )

    def build_rate(self) -> Schedule:
        """The learning rate's schedule; a number is a constant one."""
        if self.lr is None:
            # A chain must not come to a stop; the steps of gradient descent are larger than Adam's.
            return rates.polynomial(0.05, after=10) if parse_learner(self.learner).is_chain else rates.cosine(1e-3)
        rate = parse_literal(self.lr)
        return (
            rates.constant(float(rate)) if isinstance(rate, int | float) else build_member(self.lr, rates.TABLE, "rate")
        )

    def build_optimiser(self) -> Optimiser | None:
        """The optimiser named, as fit takes it: `sgd:momentum=0.9`; its learning rate is lr's.

        Doxa's own, whose steps are captured on a GPU, but with a setting that only torch's has: `adam:amsgrad=true`.
        One that is registered makes settings as those of doxa.optimisers are, or is a class of torch's kind.
        """
        if self.optimiser is None:
            return None
        name, arguments_text = split_call(self.optimiser)
        positional, keywords = parse_arguments(arguments_text)
        makers = ChainMap(OPTIMISERS, optimisers.TABLE)
        if not has_member(name, makers) or name in NOT_OPTIMISERS_BY_WORDS:
            choices = [known for known in {**OPTIMISERS, **optimisers.TABLE} if known not in NOT_OPTIMISERS_BY_WORDS]
            raise BadInput(f"there is no optimiser {name!r}{did_you_mean(name, choices)}")
        if positional or "lr" in keywords:
            raise BadInput(
                f"name an optimiser's settings, as in sgd:momentum=0.9, and give lr by itself; got {arguments_text!r}"
            )
        maker = makers[name]
        if not (isinstance(maker, type) and issubclass(maker, torch.optim.Optimizer)):
            optimiser: Optimiser = call_member(maker, self.optimiser, "optimiser", (), keywords)
            return optimiser
        doxa_optimiser = DOXA_OPTIMISERS.get(name)
        torch_optimiser: Callable[..., torch.optim.Optimizer] = partial(maker, **keywords)
        try:
            if doxa_optimiser is not None and keywords.keys() <= inspect.signature(doxa_optimiser).parameters.keys():
                return doxa_optimiser(**keywords)
            torch_optimiser([nn.Parameter(torch.zeros(1))], lr=1e-3)
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            raise BadInput(f"{self.optimiser!r} makes no optimiser: {error}") from None
        return torch_optimiser

    def chooser(self, net: nn.Module) -> Chooser | None:
        """Which weights are beliefs: those whose names fit one of the patterns; the others are point estimates."""
        if self.random is None:
            return None
        patterns = [pattern_text.strip() for pattern_text in self.random.split(",") if pattern_text.strip()]
        names = [name for name, _ in net.named_parameters()]
        for pattern in patterns or [self.random]:
            if not any(fnmatchcase(name, pattern) for name in names):
                raise BadInput(f"no weight of the net is called {pattern!r}{did_you_mean(pattern, names)}")
        return lambda name, _: any(fnmatchcase(name, pattern) for pattern in patterns)

    def autocast_dtype(self) -> torch.dtype | None:
        """The dtype that the net's operations are cast to."""
        if self.autocast is not None and self.autocast not in PRECISIONS:
            raise BadInput(f"there is no precision {self.autocast!r}{did_you_mean(self.autocast, PRECISIONS)}")
        return None if self.autocast is None else PRECISIONS[self.autocast]

    def kl_schedule(self) -> Schedule:
        """The KL weight's schedule; a number is a tempered one."""
        value = parse_literal(self.kl_weight or "0.1")
        if isinstance(value, int | float):
            return kl_weights.tempered(float(value))
        schedule: Schedule = build_member(str(self.kl_weight), kl_weights.TABLE, "KL weight")
        return schedule

    def build_search(self) -> Learner:
        """The learner that goes by values alone, with the objective and the workers named."""
        if self.objective is not None and self.objective not in OBJECTIVES:
            raise BadInput(f"there is no objective {self.objective!r}{did_you_mean(self.objective, OBJECTIVES)}")
        return VariationalOptimisation(
            build_member(self.perturbation, PERTURBATIONS, "perturbation"),
            **(OBJECTIVES[self.objective] if self.objective else {}),
            size=self.population,
            scale=self.perturbation_scale,
            engine=Pool(self.workers) if self.workers else InProcess(),
        )

    def build_learner(self, net: nn.Module) -> Learner:
        """The learner named, an ensemble of it where there are several members."""
        self.require_used()
        call = parse_learner(self.learner)
        plan = replace(self, **call.knob_values(self))
        learner = plan.build_search() if call.name == "search" else plan._call_learner(call, net)
        return Ensemble(learner, self.members, not self.same_start) if self.members and self.members > 1 else learner

    def _call_learner(self, call: LearnerCall, net: nn.Module) -> Learner:
        """The learner, its parameters set by the knobs; one that is left to it keeps its default."""
        members: dict[str, Callable[[], Any]] = {
            "prior": lambda: self.build_prior(net),
            "noise": lambda: build_member(self.noise, noise.TABLE, "noise"),
            "posterior": lambda: build_member(self.posterior, {"mean_field": Family}, "posterior"),
            "kl_weight": self.kl_schedule,
        }
        defaults = {knob for knob in ("prior", "kl_weight") if getattr(self, knob) is None and call.has_default(knob)}
        if "noise" in call.knobs:
            defaults.discard("kl_weight")  # what is learned through noise is tempered
        values = {
            parameter: members[knob]() if knob in members else getattr(self, knob)
            for knob, parameter in call.knobs.items()
            if knob not in defaults
        }
        if call.wrapped is not None:
            values["learner"] = self._call_learner(call.wrapped, net)
        learner: Learner = call_member(call.maker, call.text, "learner", (), {**values, **call.other_arguments})
        return learner


def _target_spread(training_data: TrainingData) -> float:
    return float(training_data.train[1].float().std()) or 1.0


def build_net(text: str, shape: Sequence[int], outputs: int) -> nn.Module:
    """The net that words name, for inputs of a shape: `mlp:400,400`, `mlp:100,batch_norm=true`, `lenet5`."""
    name, _, arguments_text = text.partition(":")
    positional, keywords = parse_arguments(arguments_text)
    if name == "mlp":
        if not all(isinstance(width, int) for width in positional):
            raise BadInput(f"the widths of an mlp are whole numbers, as in mlp:400,400; got {text!r}")
        if "activation" in keywords:
            keywords["activation"] = _activation(str(keywords["activation"]))
        inputs = 1
        for length in shape:
            inputs *= length
        try:
            return nets.mlp(inputs, tuple(positional), outputs, **keywords)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{text!r} makes no mlp: {error}") from None
    if name == "lenet5":
        if len(shape) != 3 or shape[1] != shape[2]:
            raise BadInput(f"lenet5 takes square images; the rows here have shape {tuple(shape)}: use an mlp")
        return nets.lenet5(shape[0], outputs, shape[1])
    return _call_net(find_member(name, nets.TABLE, "net"), text, (tuple(shape), outputs, *positional), keywords)


def _call_net(
    maker: Callable[..., nn.Module], text: str, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> nn.Module:
    """A net of the user's own, from the function that was registered for it."""
    net = call_member(maker, text, "net", positional, keywords)
    if not isinstance(net, nn.Module):
        raise BadInput(f"the net {text!r} must be a torch module; its function made a {type(net).__name__}")
    return net


def _activation(name: str) -> Callable[[], nn.Module]:
    if name not in ACTIVATIONS:
        raise BadInput(f"there is no activation {name!r}{did_you_mean(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]
