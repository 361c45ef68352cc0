"""Commands that take settings: one option for each, made from the record that says what there is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from doxa_cli.options import argument, flag, option
from doxa_settings.record import DataSettings, LearningSettings
from doxa_settings.setting import SettingInfo, setting_fields, type_name

TYPES: dict[str, Any] = {"str": str, "int": int, "float": float, "bool": bool, "list[str]": list[str], "Path": Path}
C = TypeVar("C", bound=Callable[..., Any])
SETTINGS = {
    record_field.name: (record_field, setting)
    for record in (DataSettings, LearningSettings)
    for record_field, setting in setting_fields(record)
}


def with_setting_options(names: Iterable[str]) -> Callable[[C], C]:
    """Give a command an option for each setting, between its own arguments and options; `**settings` receives them."""

    def add_options(command: C) -> C:
        own_parameters = [
            p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        positional = [p for p in own_parameters if p.kind is not p.KEYWORD_ONLY]
        parameters = [
            *positional,
            *(_parameter(*SETTINGS[name]) for name in names),
            *(p for p in own_parameters if p not in positional),
        ]
        # None of them has a place of its own: the parser gives all by name.
        keyword_parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        command.__signature__ = inspect.Signature(keyword_parameters)  # type: ignore[attr-defined]
        return command

    return add_options


def _parameter(record_field: Field[Any], setting: SettingInfo) -> inspect.Parameter:
    """None where the setting was not given."""
    annotation = Annotated[TYPES[type_name(record_field)] | None, _declare(record_field, setting)]  # type: ignore[valid-type]
    return inspect.Parameter(record_field.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _declare(record_field: Field[Any], setting: SettingInfo) -> Any:
    if setting.argument:
        return argument(setting.metavar, setting.help, setting.choices)
    name = f"--{record_field.name.replace('_', '-')}"
    if type_name(record_field) == "bool":
        return flag(name, setting.help, panel=setting.panel)
    return option(
        setting.metavar,
        setting.help,
        name,
        default=setting.default_text or False,
        panel=setting.panel,
        choices=setting.choices,
    )
