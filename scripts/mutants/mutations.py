"""Small changes to Python code, one at a time, each of which some test should notice.

Comparisons, boundaries, conditions, operators, constants, `min` and `max`, what is returned, and
statements that are left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from types import CodeType
from typing import NamedTuple, TypeAlias

from scripts.mutants.places import Place, places_in

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


def _changes(tree: ast.Module) -> Iterator[tuple[Place, ast.AST]]:
    return ((place, variant) for place in places_in(tree) for variant in _variants(place))


def _function(node: ast.FunctionDef | None) -> Function | None:
    if node is None:
        return None
    return node.name, min([node.lineno, *(part.lineno for part in node.decorator_list)])


def _line(node: ast.AST) -> int:
    return node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 0)


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."  # noqa: PLR2004 -- a line's width


def _variants(place: Place) -> Iterator[ast.AST]:
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
