"""The rooms' own examples, as the laws take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from doxa import learners, priors
from doxa.learners.example import Example

# By the learner's name and that of the example.
LEARNER_EXAMPLES: dict[str, Example] = {
    f"{name}-{kind}": example for name, examples in learners.EXAMPLES.items() for kind, example in examples.items()
}
# What makes the learner of a prior.
MAKERS: dict[str, Callable[[Any], Any]] = {name: example.make for name, example in LEARNER_EXAMPLES.items()}


def three_priors(name: str) -> list[Any]:
    """Three priors of one kind, as the members of a fleet have them."""
    examples = priors.EXAMPLES[name]
    return [examples[i % len(examples)] for i in range(3)]


def with_kl_weight(learner: Any, kl_weight: Any) -> Any:
    """The same learner with another weight of the KL, where it has one itself."""
    has_weight = any(field.name == "kl_weight" for field in fields(learner))
    return replace(learner, kl_weight=kl_weight) if has_weight else learner
