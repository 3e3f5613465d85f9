"""Holds a dashboard against Grafana's own types, which its npm package `@grafana/schema` brings."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dashboards.checks.documents import Document, panels
from scripts.javascript_packages import found, installed

HERE = Path(__file__).parent
TIMEOUT_S = 120
OPTIONS: Mapping[str, str] = {
    "heatmap": "HeatmapPanelCfg",
    "stat": "StatPanelCfg",
    "table": "TablePanelCfg",
    "timeseries": "TimeSeriesPanelCfg",
}
"""Panels whose options have types; the list of alerts has none."""
# JSON has the values of enumerations, TypeScript wants their members: `Relax` takes values.
_HEAD = """\
import type { Dashboard } from '@grafana/schema';
type Relax<T> = T extends string ? `${T}`
  : T extends (infer U)[] ? Relax<U>[]
  : T extends object ? { [K in keyof T]: Relax<T[K]> } : T;
"""


def mistakes(boards: Mapping[str, Document]) -> str:
    """What the compiler says of all boards; nothing, if they are as Grafana wants them."""
    modules = installed(HERE)
    with TemporaryDirectory(prefix="loopguard-types-") as made:
        home = Path(made)
        (home / "node_modules").symlink_to(modules)
        files = {f"{name}.mts": typescript(board) for name, board in boards.items()}
        for name, text in files.items():
            (home / name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [
                *(found("node"), str(modules / "typescript" / "bin" / "tsc")),
                *("--noEmit", "--strict", "--skipLibCheck"),
                *("--module", "nodenext", "--target", "es2022"),
                *files,
            ],
            cwd=home,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    return f"{done.stdout}{done.stderr}"


def typescript(board: Document) -> str:
    """A program that is one constant for the board, and some for each panel."""
    used = sorted({panel["type"] for panel in panels(board)} & set(OPTIONS))
    imports = [
        f"import type * as {kind} from "
        f"'@grafana/schema/dist/esm/raw/composable/{kind}/panelcfg/x/{OPTIONS[kind]}_types.gen';"
        for kind in used
    ]
    whole = json.dumps(without_what_it_does_not_know(board))
    return "\n".join(
        [
            _HEAD,
            *imports,
            f"export const board: Relax<Dashboard> = {whole};",
            *(line for panel in panels(board) for line in _of_a_panel(panel)),
        ]
    )


def _of_a_panel(panel: Document) -> Iterator[str]:
    kind, number = panel["type"], panel["id"]
    if kind in OPTIONS:
        # A table's footer is read by Grafana up to 12.
        options = json.dumps({k: v for k, v in panel["options"].items() if k != "footer"})
        yield f"export const options{number}: Partial<Relax<{kind}.Options>> = {options};"
    custom = panel.get("fieldConfig", {}).get("defaults", {}).get("custom")
    if kind == "timeseries":
        yield f"export const field{number}: Relax<{kind}.FieldConfig> = {json.dumps(custom)};"


def without_what_it_does_not_know(board: Document) -> dict[str, Any]:
    """The board without what is right, and not in the types.

    An annotation has keys of its data source, which its query has as well; `auto...` of a variable
    are old defaults.
    """
    known = ("refId", "datasource", "hide", "queryType")
    notes = [
        {
            **{key: value for key, value in note.items() if not key.endswith("Format")},
            "target": {key: note["target"][key] for key in known if key in note["target"]},
        }
        for note in board["annotations"]["list"]
    ]
    variables = [
        {key: value for key, value in each.items() if not key.startswith("auto")}
        for each in board["templating"]["list"]
    ]
    return {**board, "annotations": {"list": notes}, "templating": {"list": variables}}
