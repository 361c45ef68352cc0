"""Which scope binds a name: Python's own rules, for `same_code.py`."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

# Where a syntax tree has the names of variables.
NAMES = {
    *(("Name", "id"), ("arg", "arg"), ("FunctionDef", "name"), ("AsyncFunctionDef", "name"), ("ClassDef", "name")),
    *(("ExceptHandler", "name"), ("MatchAs", "name"), ("MatchStar", "name"), ("MatchMapping", "rest")),
    *(("Global", "names"), ("Nonlocal", "names")),
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
OPENING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, *COMPREHENSIONS)
# What of a function or class is evaluated outside of it.
OUTSIDE = {"decorator_list", "returns", "bases", "keywords", "defaults", "kw_defaults", "annotation"}


@dataclass(eq=False)
class Scope:
    """A module, class, function or comprehension: the names that it binds, and those among them that it imports."""

    parent: Scope | None
    node: ast.AST
    bound: set[str] = field(default_factory=set)
    declared_outside: set[str] = field(default_factory=set)  # by `global` or `nonlocal`
    imports: list[tuple[str, str]] = field(default_factory=list)  # a local name, and the dotted path that it stands for

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def resolve(self, name: str) -> Scope | None:
        """The scope that binds a name as it is seen from here; none for a builtin."""
        scope: Scope | None = self
        while scope is not None:
            if (scope is self or not scope.is_class) and name in scope.bound - scope.declared_outside:
                return scope
            scope = scope.parent
        return None


class ScopeTree:
    """The scope of every node of a syntax tree, and the scopes that its nodes open."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(None, tree)
        self.scope_of: dict[ast.AST, Scope] = {}
        self.opened: dict[ast.AST, Scope] = {tree: self.module}
        self._exceptions: dict[ast.AST, Scope] = {}  # nodes that do not belong where they stand
        self._visit(tree, self.module)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        self.scope_of[node] = scope
        self._bind(node, scope)
        inside, outside = scope, scope.parent or scope
        if isinstance(node, OPENING):
            inside, outside = Scope(scope, node), scope
            self.opened[node] = inside
        if isinstance(node, COMPREHENSIONS):
            self._exceptions[node.generators[0].iter] = scope
        elif isinstance(node, ast.NamedExpr):
            self._exceptions[node.target] = _function_around(scope)
        has_signature = isinstance(node, (*OPENING, ast.arguments, ast.arg))
        for name, value in ast.iter_fields(node):
            usual = outside if has_signature and name in OUTSIDE else inside
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self._visit(child, self._exceptions.get(child, usual))

    def _bind(self, node: ast.AST, scope: Scope) -> None:
        if isinstance(node, ast.Global | ast.Nonlocal):
            scope.declared_outside.update(node.names)
            if isinstance(node, ast.Global):
                self.module.bound.update(node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports = _imports(node)
            scope.imports += imports
            scope.bound.update(local for local, _ in imports)
        elif not (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)):
            names = [getattr(node, name) for name in node._fields if (type(node).__name__, name) in NAMES]
            scope.bound.update(name for name in names if name is not None)


def _function_around(scope: Scope) -> Scope:
    while isinstance(scope.node, COMPREHENSIONS) and scope.parent is not None:
        scope = scope.parent
    return scope


def _imports(node: ast.Import | ast.ImportFrom) -> list[tuple[str, str]]:
    if isinstance(node, ast.Import):
        return [(alias.asname or alias.name.split(".")[0], alias.name) for alias in node.names]
    module = "." * node.level + (node.module or "")
    return [(alias.asname or alias.name, f"{module}.{alias.name}") for alias in node.names]
