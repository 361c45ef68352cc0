"""Commands whose help shows flags, --help among them, without the type of a value that they do not take."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from doxa_cli.outcome import UsageError
from doxa_cli.words import problem_of_numbers, problem_of_words


def _without_types(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    return parameters


class PlainFlagsCommand(TyperCommand):
    """A command of this kind; it refuses words that are no text, and numbers that nobody could count to."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        problem = problem_of_words(args)
        if problem is None:
            args = super().parse_args(ctx, args)
            problem = problem_of_numbers(ctx.params)
        if problem is not None and not ctx.resilient_parsing:
            raise UsageError(problem, ctx=ctx)
        return args

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))


class PlainFlagsGroup(TyperGroup):
    """A group of commands of this kind."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))
