"""How docstrings are read for the API pages: objects under their public names, equations set apart."""

from __future__ import annotations

import html
import re
from typing import Any

import griffe
from rooms import owners, rooms


class PublicNames(griffe.Extension):
    """`doxa.priors.gaussian.Gaussian` is shown as users call it: `doxa.priors.gaussian`."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rename every public object of the package."""
        if pkg.path != "doxa":
            return
        for defined, name in owners(rooms()).items():
            if name.short_name == "TABLE":
                continue
            public_object = pkg[defined.removeprefix("doxa.")]
            public_object.name = name.short_name
            public_object.parent = pkg if name.room == "doxa" else pkg[name.room.removeprefix("doxa.")]


class Defaults(griffe.Extension):
    """A default that stands in the record of options is shown as its value: `epochs=10` for `epochs=Options.epochs`."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Put the values into one signature."""
        from doxa.training.options import Options

        for parameter in func.parameters:
            name = str(parameter.default).removeprefix("Options.")
            if name != str(parameter.default):
                parameter.default = repr(getattr(Options, name))


class Equations(griffe.Extension):
    """A paragraph that is no sentence is an equation, or says shapes: it keeps its lines and its spaces."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Mark the equations of one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = mark_equations(obj.docstring.value)


def mark_equations(docstring: str) -> str:
    """Markdown in which every paragraph after the first that does not end a sentence is a block of its own."""
    first, *others = re.split(r"\n\s*\n", docstring)
    return "\n\n".join([first, *(_block(p) if _is_equation(p) else p for p in others)])


def _is_equation(paragraph: str) -> bool:
    return not paragraph.startswith("`") and paragraph.rstrip()[-1:] not in ".?!"


def _block(paragraph: str) -> str:
    return f'<div class="equation">{html.escape(paragraph.replace("`", ""), quote=False)}</div>'
