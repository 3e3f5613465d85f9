"""What `make mutants` changes, what it leaves alone, and for how long it believes what it found."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.mutants import known as known_module
from scripts.mutants import tests as tests_module
from scripts.mutants.in_place import functions_of
from scripts.mutants.known import Known
from scripts.mutants.mutations import mutated, mutations_of


def changes(source: str) -> list[str]:
    return [f"{mutation.before} -> {mutation.after}" for mutation in mutations_of(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a < b", ["a < b -> a <= b", "a < b -> a >= b"]),
        ("a >= b", ["a >= b -> a > b", "a >= b -> a < b"]),
        ("a == b", ["a == b -> a != b"]),
        ("a is None", ["a is None -> a is not None"]),
        ("a in b", ["a in b -> a not in b"]),
        ("a < b == c", ["a < b == c -> a <= b == c", "a < b == c -> a >= b == c"]),
        ("a and b", ["a and b -> a or b", "a and b -> b", "a and b -> a"]),
        ("not a", ["not a -> a"]),
        ("-a", ["-a -> a"]),
        ("a + b", ["a + b -> a - b"]),
        ("a // b", ["a // b -> a * b"]),
        ("a if b else c", ["a if b else c -> c if b else a"]),
        ("min(a, b)", ["min(a, b) -> max(a, b)"]),
        ("all(a)", ["all(a) -> any(a)"]),
        ("a = 3", ["3 -> 4", "3 -> 2"]),
        ("a = True", ["True -> False"]),
        ("a = 'b'", ["'b' -> 'b~'"]),
        ("a = b'c'", ["b'c' -> b'c~'"]),
        ("a = b[1]", ["b[1] -> b[2]"]),
        ("if a: b", ["if a: b -> if not a: b"]),
        ("while a: b", ["while a: b -> while not a: b"]),
        ("[a for a in b if a]", ["for a in b if a -> for a in b if not a"]),
        ("def f():\n return a", ["return a -> return None"]),
        ("def f():\n g()", ["g() -> pass"]),
        ("def f():\n a += b", ["a += b -> pass"]),
        ("def f():\n raise E('why')", ["raise E('why') -> pass"]),
        ("def f(a):\n a.b = c", ["a.b = c -> pass"]),
        ("def f(a):\n a = b", ["a = b -> pass"]),
    ],
)
def test_what_is_changed(source: str, expected: list[str]):
    found = changes(source)

    assert found[: len(expected)] == expected
    assert len(found) == len(expected) or "<" in source


@pytest.mark.parametrize(
    "source",
    [
        "import a",
        '"""Words."""',
        "a: Literal['b'] = c",
        "a: Kind = 'b'",
        "A: TypeAlias = Literal['b']",
        "K = TypeVar('K')",
        "__slots__ = ('a', 'b')",
        "if TYPE_CHECKING:\n from a import b",
        "def f(a: int = b) -> 'c': pass",
        "@lru_cache(3)\ndef f(): pass",
        "class A(B, frozen=True): pass",
        "def f():\n a = b",
        "class A:\n def __init__(self):\n  self.a = b",
        "def f():\n return None",
        "f'{a} words'",
        "zip(a, b, strict=True)",
    ],
)
def test_what_is_left_alone(source: str):
    assert changes(source) == []


def test_a_mutant_is_the_module_with_one_change():
    source = "def f(a: int) -> bool:\n    return a > 1 and a < 9\n"
    found: dict[str, list[bool | None]] = {}
    for mutation in mutations_of(source):
        names: dict[str, Callable[[int], bool | None]] = {}
        exec(mutated(source, mutation.number, "f.py"), names)  # noqa: S102
        found[f"{mutation.before} -> {mutation.after}"] = [names["f"](a) for a in (0, 1, 8, 9)]

    assert found["return a > 1 and a < 9 -> return None"] == [None] * 4
    assert found["a > 1 -> a >= 1"] == [False, True, True, False]
    assert found["a > 1 and a < 9 -> a > 1"] == [False, False, True, True]
    assert found["9 -> 10"] == [False, False, True, True]
    assert len(found) == 12


def test_who_survived_is_tried_again_once_the_tests_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(known_module, "cache", lambda: tmp_path / "cache")
    module, test = tmp_path / "otel_loopguard/a.py", tmp_path / "tests/unit/test_a.py"
    for path in (module, test):
        path.parent.mkdir(parents=True)
        path.write_text("a")

    def fates() -> dict[int, str]:
        return {**Known("a.py", ["unit/test_a.py"], tmp_path).fates()}

    known = Known("a.py", ["unit/test_a.py"], tmp_path)
    known.learn(1, "killed")
    known.learn(2, "survived")
    known.learn(3, "timed out")

    assert fates() == {1: "killed", 2: "survived", 3: "timed out"}
    test.write_text("b")
    assert fates() == {1: "killed", 3: "timed out"}
    module.write_text("b")
    assert fates() == {}


def test_all_tests_that_are_named_are_there():
    root = Path(__file__).resolve().parents[1]
    named = {test.partition("::")[0] for tests in tests_module.TESTS.values() for test in tests}

    assert [test for test in sorted(named) if not (root / test).exists()] == []
    assert tests_module.modules_like(["guard.py", "detectors/sweep"]) == [
        "guard.py",
        "detectors/sweep.py",
    ]


def test_functions_are_found_although_the_collector_was_told_to_leave_them_alone():
    gc.freeze()
    try:
        found = functions_of(Path(known_module.__file__ or ""))
    finally:
        gc.freeze()

    assert {"fates", "forget", "learn"} <= {function.__name__ for function in found}
