"""Commands that take settings: one option for each, made from the record that says what there is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from doxa_cli.options import argument, flag, option
from doxa_settings.record import Knobs, Rows
from doxa_settings.setting import Setting, kind, settings

TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "list[str]": list[str], "Path": Path}
C = TypeVar("C", bound=Callable[..., Any])
SETTINGS = {one.name: (one, setting) for record in (Rows, Knobs) for one, setting in settings(record)}


def taking(names: Iterable[str]) -> Callable[[C], C]:
    """Give a command an option for each setting, between its own arguments and options; `**settings` receives them."""

    def give(command: C) -> C:
        own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
        first = [p for p in own if p.kind is not p.KEYWORD_ONLY]
        made = [*first, *(_parameter(*SETTINGS[name]) for name in names), *(p for p in own if p not in first)]
        # None of them has a place of its own: the parser gives all by name.
        given = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in made]
        command.__signature__ = inspect.Signature(given)  # type: ignore[attr-defined]
        return command

    return give


def _parameter(one: Field[Any], setting: Setting) -> inspect.Parameter:
    """None where the setting was not given."""
    annotation = Annotated[TYPES[kind(one)] | None, _declared(one, setting)]  # type: ignore[valid-type]
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _declared(one: Field[Any], setting: Setting) -> Any:
    if setting.argument:
        return argument(setting.metavar, setting.help, setting.known)
    name = f"--{one.name.replace('_', '-')}"
    if kind(one) == "bool":
        return flag(name, setting.help, panel=setting.panel)
    return option(
        setting.metavar, setting.help, name, default=setting.shown or False, panel=setting.panel, known=setting.known
    )
