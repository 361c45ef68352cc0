"""A learner by words, and the knobs that set its parameters, which are read off its signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from doxa import learners
from doxa.errors import BadInput, did_you_mean
from doxa.runs.parsing import has_member, misfit, parse_arguments, read_signature, resolve_nested, split_call
from doxa.search.learner import VariationalOptimisation
from doxa_settings.record import LearningSettings

# The parameter that a knob sets, of a learner that has it.
PARAMETERS = {
    "prior": "prior",
    "kl_weight": "kl_weight",
    "noise": "noise",
    "posterior": "posterior",
    "samples": "samples",
    "antithetic": "antithetic",
    "dropout": "rate",
    "input_dropout": "input_rate",
    "temperature": "temperature",
    "burn_in": "burn_in",
    "thinning": "thinning",
    "on_disk": "on_disk",
    "average_from": "start_at",
    "average_every": "every",
    "average_decay": "decay",
}
IN_WORDS = ("prior", "kl_weight", "noise", "posterior")  # knobs that name a member of a room
OF_SEARCH = ("perturbation", "objective", "population", "perturbation_scale", "workers")
NOT_OF_CHAINS = ("patience", "optimiser")
# Knobs that are of no use to the learners that are no members of the room.
UNUSED = {
    "auto": (
        *OF_SEARCH,
        *(knob for knob in PARAMETERS if knob not in ("prior", "kl_weight", "noise")),
        "likelihood",
        "patience",
        "same_start",
        "optimiser",
        "autocast",
        "random",
        "validation_samples",
        "checkpoint_every",
        "checkpoint_steps",
    ),
    "search": tuple(PARAMETERS),
}
MAKERS: dict[str, Callable[..., Any]] = {
    "auto": learners.variational,  # a choice among such
    "search": VariationalOptimisation,
}


@dataclass(frozen=True)
class LearnerCall:
    """A learner as words name it, with arguments or without: `swa`, `mine:strength=2`."""

    text: str
    name: str
    maker: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)  # by parameter

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What it can be told, by name."""
        return inspect.signature(self.maker).parameters

    @property
    def knobs(self) -> dict[str, str]:
        """The knobs that set parameters of this learner, with these."""
        parameters = self.parameters
        return {knob: name for knob, name in PARAMETERS.items() if name in parameters and _sets(knob, parameters[name])}

    @property
    def wrapped(self) -> LearnerCall | None:
        """The learner of points that one with a parameter `learner` works on, unless its words name another."""
        takes_learner = "learner" in self.parameters and "learner" not in self.arguments
        return parse_learner("point") if takes_learner else None

    @property
    def is_chain(self) -> bool:
        """Whether samples are kept along the way, which has no best epoch and steps of its own."""
        return "burn_in" in self.parameters

    @property
    def has_optional_prior(self) -> bool:
        """Whether it learns without a prior unless one is given."""
        call = self.wrapped or self
        return "prior" in call.knobs and call.parameters["prior"].default is None

    def has_default(self, knob: str) -> bool:
        """Whether the learner does without a knob that it has."""
        return knob in self.knobs and self.parameters[self.knobs[knob]].default is not inspect.Parameter.empty

    @property
    def unused(self) -> tuple[str, ...]:
        """The knobs that this learner has no use for."""
        if self.name in UNUSED:
            return UNUSED[self.name]
        used = {*self.knobs, *(self.wrapped.knobs if self.wrapped else ())}
        return (
            *(knob for knob in (*PARAMETERS, *OF_SEARCH) if knob not in used),
            *(NOT_OF_CHAINS if self.is_chain else ()),
        )

    def advice(self, knob: str, value: Any) -> str:
        """What to do about a knob that is of no use."""
        if self.name == "auto":
            return "name a learner, e.g. variational, to set it"
        parameter = PARAMETERS.get(knob)
        has_parameter = parameter in self.parameters and self.name not in UNUSED
        return f"write {self.name}:{parameter}={value}" if has_parameter else "leave it out"

    def knob_values(self, settings: LearningSettings) -> dict[str, Any]:
        """What the words say of parameters that knobs set, by knob; to say it with the knob as well is refused."""
        values = {knob: self.arguments[name] for knob, name in self.knobs.items() if name in self.arguments}
        for knob in values:
            if getattr(settings, knob) != getattr(LearningSettings, knob):
                raise BadInput(
                    f"{knob} sets {self.knobs[knob]} of the learner {self.name}, which {self.text!r} sets too; "
                    "give one of them"
                )
        return {knob: str(v) if knob in IN_WORDS and v is not None else v for knob, v in values.items()}

    @property
    def other_arguments(self) -> dict[str, Any]:
        """The arguments that no knob sets."""
        return {name: value for name, value in self.arguments.items() if name not in self.knobs.values()}


def _sets(knob: str, parameter: inspect.Parameter) -> bool:
    """Whether a knob and the parameter it is for mean the same: their defaults agree, or, without one, their names."""
    if parameter.default is parameter.empty:
        return knob == parameter.name
    if knob in IN_WORDS:
        return not isinstance(parameter.default, str | int | float)
    return bool(parameter.default == getattr(LearningSettings, knob))


def parse_learner(text: str) -> LearnerCall:
    """The learner that words name."""
    if text in UNUSED:
        return LearnerCall(text, text, MAKERS[text])
    name, arguments_text = split_call(text)
    if not has_member(name, learners.TABLE) or name == "ensemble":  # which is reached by members
        choices = ("auto", *(known for known in learners.TABLE if known != "ensemble"), "search")
        raise BadInput(f"there is no learner {text!r}{did_you_mean(name, choices)}")
    positional, keywords = parse_arguments(arguments_text)
    signature = read_signature(learners.TABLE[name], text, "learner")
    try:
        signature.bind_partial(*positional, **keywords)
    except TypeError as error:
        raise misfit(signature, text, "learner", error) from None
    arguments = {**dict(zip(signature.parameters, positional, strict=False)), **keywords}
    parameter = signature.parameters.get("learner")
    if parameter is not None and "learner" in arguments:
        arguments["learner"] = resolve_nested(arguments["learner"], parameter, learners.TABLE, "learner")
    return LearnerCall(text, name, learners.TABLE[name], arguments)
