"""Labels: how they are written, and what is wrong with bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_loopguard.backtest import LabelError, Said, read_labels
from otel_loopguard.backtest.labels import label_of


def written(folder: Path, data: object) -> str:
    path = folder / "labels.json"
    path.write_text(json.dumps(data))
    return str(path)


@pytest.mark.parametrize(
    "data",
    [
        {"a": "loop", "b": False, "c": "weak"},
        {"a": True, "b": " No ", "c": {"label": "weak"}},
        {
            "labels": [
                {"run_id": "a", "label": "loop"},
                {"run_id": "b", "label": "no"},
                {"run_id": "c", "label": "weak", "why": "x"},
            ],
            "note": "read by hand",
        },
        [
            {"run_id": "a", "label": True},
            {"run_id": "b", "label": False},
            {"run_id": "c", "label": "WEAK"},
        ],
    ],
)
def test_forms(tmp_path: Path, data: object):
    expected = {"a": Said("loop"), "b": Said("no"), "c": Said("weak")}
    assert read_labels(written(tmp_path, data)) == expected


def test_success_may_be_given_as_well(tmp_path: Path):
    data = {"a": {"success": True}, "b": {"label": "no", "success": False}, "7": None}
    assert read_labels(written(tmp_path, data)) == {
        "a": Said(None, success=True),
        "b": Said("no", success=False),
        "7": Said(),
    }
    assert read_labels(written(tmp_path, [{"run_id": 7, "label": "no"}])) == {"7": Said("no")}


@pytest.mark.parametrize("value", [None, 1, 0, "", "maybe", {"label": "loop"}, ["loop"]])
def test_what_is_no_label(value: object):
    assert label_of(value) is None


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (
            {"a": "maybe"},
            'run \'a\': expected "loop", "weak", "no", true or false as label, got \'maybe\'',
        ),
        ({"a": 1}, 'run \'a\': expected "loop", "weak", "no", true or false as label, got 1'),
        ({"a": {"success": "yes"}}, "run 'a': expected true or false as success, got 'yes'"),
        ([{"label": "no"}], "label 1: expected an object with a 'run_id', got {'label': 'no'}"),
        (["a"], "label 1: expected an object with a 'run_id', got 'a'"),
        (7, "expected an object from run ids to labels, or a list, got 7"),
    ],
)
def test_errors(tmp_path: Path, data: object, why: str):
    path = written(tmp_path, data)
    with pytest.raises(LabelError) as caught:
        read_labels(path)
    assert str(caught.value) == f"{path}: {why}"


def test_a_file_that_is_no_json_or_not_there(tmp_path: Path):
    path = tmp_path / "labels.json"
    with pytest.raises(LabelError, match=r"labels\.json: the labels cannot be read: No such file"):
        read_labels(str(path))
    path.write_text("a = loop")
    with pytest.raises(LabelError, match=r"labels\.json: expected JSON, got 'a = loop': "):
        read_labels(str(path))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"a": {"lable": "loop"}}, ["run 'a': there is no field 'lable'; did you mean 'label'?"]),
        (
            [{"run_id": 7, "label": "no", "sucess": True}],
            ["run '7': there is no field 'sucess'; did you mean 'success'?"],
        ),
        (
            {"a": {"kind": 1}},
            ["run 'a': there is no field 'kind'; expected run_id, label, success"],
        ),
        ([{"run_id": "a", "label": "no", "kind": "cycle", "why": "read"}], []),
        ({"note": "x", "labels": [{"run_id": "a", "success": False, "who": 1}]}, []),
        ({"a": {}, "b": None}, []),
    ],
)
def test_fields_that_are_not_known_are_named_unless_they_are_notes(
    tmp_path: Path, data: object, expected: list[str]
):
    path = written(tmp_path, data)
    heard: list[str] = []
    read_labels(path, on_unclear=heard.append)
    assert heard == [f"{path}: {why}" for why in expected]
