"""Small changes to Python code, one at a time, each of which some test should notice.

Comparisons, boundaries, conditions, operators, constants, `min` and `max`, what is returned, and
statements that are left out. Nothing is changed that only types, documents or reports: annotations,
docstrings, `__slots__`, decorators, and the wording of what is raised.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType
from typing import NamedTuple, TypeAlias


Function: TypeAlias = tuple[str, int]
"""The name of a function and its first line."""


class Mutation(NamedTuple):
    """What is changed in a module, and where."""

    number: int
    line: int
    function: Function | None
    """The one around it; `None` where it is worked out when the module is imported."""
    before: str
    after: str


class _Place(NamedTuple):
    """Where a node stands in its parent."""

    node: ast.AST
    put: Callable[[ast.AST], None]
    function: ast.FunctionDef | None
    """The innermost function around it."""


COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}

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
OMITTED = (ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Delete, ast.Expr, ast.Raise)
"""Statements that are left out, apart from `return`."""


def mutations_of(source: str) -> list[Mutation]:
    """Return all that may be changed in a module."""
    return [
        Mutation(
            number,
            _line(place.node),
            _function(place.function),
            _shown(place.node),
            _shown(variant),
        )
        for number, (place, variant) in enumerate(_changes(ast.parse(source)))
    ]


def mutated(source: str, number: int, path: str) -> CodeType:
    """Return the module's code with one mutation."""
    tree = ast.parse(source)
    place, variant = next(islice(_changes(tree), number, None))
    place.put(ast.copy_location(variant, place.node))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _changes(tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    return ((place, variant) for place in _places(tree, None) for variant in _variants(place))


def _function(node: ast.FunctionDef | None) -> Function | None:
    if node is None:
        return None
    return node.name, min(part.lineno for part in (node, *node.decorator_list))


def _line(node: ast.AST) -> int:
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."  # noqa: PLR2004 -- a line's width


def _places(parent: ast.AST, around: ast.FunctionDef | None) -> Iterator[_Place]:
    if isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant):
        yield from _places(parent.value, around)
        return
    for field, value in ast.iter_fields(parent):
        # Defaults are worked out where the function is defined.
        is_inside = isinstance(parent, ast.FunctionDef) and field == "body"
        function = parent if is_inside else around
        if (type(parent), field) in UNTOUCHED or _is_typed(parent, field):
            continue
        for index, node in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(node, ast.AST) and not _is_for_readers(node):
                yield _Place(node, _putter(parent, field, value, index), function)
                yield from _places(node, function)


def _is_typed(parent: ast.AST, field: str) -> bool:
    """Say whether a value is one of a few words, so that a type checker notices any other."""
    if not isinstance(parent, ast.AnnAssign) or field != "value":
        return False
    words = [part for part in ast.walk(parent) if isinstance(part, ast.Constant)]
    typed = "str" in ast.unparse(parent.annotation)
    return not typed and any(isinstance(word.value, str) for word in words)


def _putter(parent: ast.AST, field: str, value: object, index: int) -> Callable[[ast.AST], None]:
    def put(node: ast.AST) -> None:
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


def _variants(place: _Place) -> Iterator[ast.AST]:
    node = place.node
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BoolOp(op=operator, values=values):
            other = ast.Or() if isinstance(operator, ast.And) else ast.And()
            yield ast.BoolOp(other, values)
            for index in range(len(values)):
                left = values[:index] + values[index + 1 :]
                yield left[0] if len(left) == 1 else ast.BoolOp(operator, left)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(operator)](), right)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in FUNCTIONS:
            yield ast.Call(ast.Name(FUNCTIONS[name], ast.Load()), args, keywords)
        case ast.Subscript(value, ast.Constant(int(index)), context):
            yield ast.Subscript(value, ast.Constant(index + 1), context)
        case ast.Constant(value):
            yield from map(ast.Constant, _constants(value))
        case _:
            yield from _statements(node, place.function)


def _comparisons(node: ast.Compare) -> Iterator[ast.Compare]:
    for index, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            ops = [*node.ops[:index], other(), *node.ops[index + 1 :]]
            yield ast.Compare(node.left, ops, node.comparators)


def _constants(value: object) -> tuple[bool | float | str | bytes, ...]:
    match value:
        case bool():
            return (not value,)
        case int() | float():
            return (value + 1, value - 1)
        case str():
            return (f"{value}~",)
        case bytes():
            return (value + b"~",)
        case _:
            return ()


def _statements(node: ast.AST, function: ast.FunctionDef | None) -> Iterator[ast.AST]:
    match node:
        case ast.Return(value=None):
            yield ast.Pass()
        case ast.Return(value=value) if not isinstance(value, ast.Constant) or value.value:
            yield ast.Return(ast.Constant(None))
        case ast.If(test, body, orelse) if _is_plain(test):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.While(test, body, orelse) if _is_plain(test):
            yield ast.While(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.comprehension(target, iterable, [test]) if _is_plain(test):
            negated: list[ast.expr] = [ast.UnaryOp(ast.Not(), test)]
            yield ast.comprehension(target, iterable, negated, node.is_async)
        case _ if function is not None and isinstance(node, OMITTED):
            if not (isinstance(node, ast.Assign) and _is_needed(node, function)):
                yield ast.Pass()
        case _:
            return


def _is_needed(node: ast.Assign, function: ast.FunctionDef) -> bool:
    """Say whether something would have no value at all without this assignment."""
    if function.name == "__init__" and isinstance(node.targets[0], ast.Attribute):
        return True
    given = [argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)]
    known = given + _stored_in(function)
    return any(known.count(name) == 1 for name in _stored_in(node))


def _stored_in(node: ast.AST) -> list[str]:
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]


def _is_plain(test: ast.expr) -> bool:
    """Say whether nothing else in a condition is turned round."""
    return not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant)
