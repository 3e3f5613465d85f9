"""The places of a module that may be changed: those that matter when it runs.

What only types, documents or reports is left alone: annotations, docstrings, `__slots__`,
decorators, and the wording of what is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

UNTOUCHED: frozenset[tuple[type[ast.AST], str]] = frozenset(
    (
        (ast.AnnAssign, "annotation"),
        (ast.ClassDef, "bases"),
        (ast.ClassDef, "decorator_list"),
        (ast.ClassDef, "keywords"),
        (ast.ClassDef, "type_params"),
        (ast.FunctionDef, "decorator_list"),
        (ast.FunctionDef, "returns"),
        (ast.FunctionDef, "type_params"),
        (ast.Raise, "exc"),
        (ast.Raise, "cause"),
        (ast.arg, "annotation"),
    )
)
FOR_TYPES = ("TypeAlias", "TypeVar", "Literal", "__slots__", "__all__", "TYPE_CHECKING", "cast")


class Place(NamedTuple):
    """Where a node stands in its parent."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    function: ast.FunctionDef | None
    """The innermost function around it."""


def places_in(parent: ast.AST, around: ast.FunctionDef | None = None) -> Iterator[Place]:
    """Yield the places below a node; `around` is the function that it stands in."""
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
        yield from places_in(parent.value, around)
        return
    for field, value in ast.iter_fields(parent):
        if (type(parent), field) in UNTOUCHED or _is_typed(parent, field):
            continue
        # Defaults are worked out where the function is defined.
        function = parent if isinstance(parent, ast.FunctionDef) and field == "body" else around
        nodes = cast("list[object]", value if isinstance(value, list) else [value])
        for index, node in enumerate(nodes):
            if isinstance(node, ast.AST) and not _is_for_readers(node):
                yield Place(node, _putter(parent, field, index), function)
                yield from places_in(node, function)


def _is_typed(parent: ast.AST, field: str) -> bool:
    """Say whether a value is one of a few words, so that a type checker notices any other."""
    if not isinstance(parent, ast.AnnAssign) or field != "value":
        return False
    words = [part for part in ast.walk(parent) if isinstance(part, ast.Constant)]
    typed = "str" in ast.unparse(parent.annotation)
    return not typed and any(isinstance(word.value, str) for word in words)


def _putter(parent: ast.AST, field: str, index: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
        value: object = getattr(parent, field)
        if isinstance(value, list):
            value[index] = node
        else:
            setattr(parent, field, node)

    return put


def _is_for_readers(node: ast.AST) -> bool:
    """Say whether a node is of no consequence when the code runs: types, documents, wording."""
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.keyword(arg="strict"):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.AnnAssign(annotation=named) | ast.Assign(targets=[named]):
            return isinstance(named, ast.Name) and named.id in FOR_TYPES
        case ast.Subscript(value=named) | ast.If(test=named) | ast.Call(func=named):
            return isinstance(named, ast.Name) and named.id in FOR_TYPES
        case _:
            return False
