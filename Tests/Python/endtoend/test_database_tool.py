"""`hearth database` against a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from endtoend.trees import OWNER, Tree
from support.program import BINARY
from support.tool import Tool


@pytest.fixture
def tool(address: str, project: str, tmp_path: Path) -> Tool:
    if not BINARY:
        pytest.skip("HEARTH_BINARY names no program")
    return Tool("database", options=["--address", address, "--namespace", project], folder=tmp_path)


def plain(value: Any) -> Any:
    """Without arrays: they are only a notation for nodes."""
    if isinstance(value, list):
        return {str(index): plain(one) for index, one in enumerate(value) if one is not None}
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value


def test_reading_and_writing(tool: Tool, tree: Tree) -> None:
    tool("set", "a/b", '{"x": 1, "ä": "text"}')
    assert json.loads(tool("get", "/a")) == {"b": {"x": 1, "ä": "text"}}
    tool("update", "a", data='{"b/x": {".sv": {"increment": 4}}, "c": true}')
    assert tree.get("a") == {"b": {"x": 5, "ä": "text"}, "c": True}
    name = tool("push", "list", '"one"').strip()
    assert tree.get("list") == {name: "one"}
    tool("remove", "list")
    assert tool("get", "list") == "null\n"
    assert tool("get", "a", "--shallow") == '{"b":true,"c":true}\n'
    assert tool("get", "a/b", "--pretty").startswith('{\n  "x" : 5')
    (tool.folder / "in.json").write_text("[1, 2]")
    tool("set", "from-file", "--file", "in.json")
    tool("get", "from-file", "-o", "out.json")
    assert (tool.folder / "out.json").read_text() == "[1,2]\n"


def test_queries(tool: Tool, tree: Tree) -> None:
    tree.rules({"s": {".indexOn": ".value"}})
    tree.put("s", {"a": 3, "b": 1, "c": 2, "d": "x"})
    assert json.loads(tool("get", "s", "--order-by", "$value", "--limit-to-first", "2")) == {"b": 1, "c": 2}
    assert json.loads(tool("get", "s", "--order-by", "$value", "--equal-to", "x")) == {"d": "x"}
    assert json.loads(tool("get", "s", "--order-by", "$key", "--start-after", "b", "--end-at", "c")) == {"c": 2}


def test_refusals(tool: Tool, tree: Tree) -> None:
    refused = tool.run("get", "s", "--order-by", "height")
    assert refused.returncode == 1 and "Index not defined" in refused.stderr
    assert tool.run("set", "a", "{").returncode == 1
    assert tool.run("frob", "a").returncode == 64
    assert tool.run("get").returncode == 64
    tree.rules({".read": False})
    assert "Permission denied" in tool.run("get", "a", "--token", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.").stderr
    unreachable = Tool("database", options=["--address", "127.0.0.1:1"]).run("get", "a")
    assert unreachable.returncode == 69


LARGE: dict[str, Any] = {
    ".priority": "root",
    "users": {
        ".priority": 7,
        **{f"u{number:05}": {"name": "x" * (number % 50), "n": [1, {"a": number}], "é": True} for number in range(25_000)},
    },
    "text": "y" * 2_500_000,
    "list": [{"q": number} for number in range(20_000)],
    "leaf": {".value": "z" * 1_500_000, ".priority": 3},
    "small": {"a": {".value": 1, ".priority": "p"}},
}


def test_export_and_import(tool: Tool, tree: Tree) -> None:
    (tool.folder / "large.json").write_text(json.dumps(LARGE, indent=1, ensure_ascii=False))
    tree.put("place/old", 1)
    tool("import", "place", "-f", "large.json")
    assert tree.get("place/.priority") == "root"
    assert "old" not in tree.get("place", OWNER, shallow="true")
    tool("export", "place", "-o", "out.json")
    assert plain(json.loads((tool.folder / "out.json").read_text())) == plain(LARGE)
    tree.put("place", {"kept": 1, "small": {"a": 2, "b": 3}, "users": {"gone": 1}})
    users = {name: user for name, user in LARGE["users"].items() if name != ".priority"}
    tool("import", "place", "--merge", data=json.dumps({"small": {"a": 5}, "new": 6, "users": users}))
    assert tree.get("place") == {"kept": 1, "small": {"a": 5}, "new": 6, "users": users}


@pytest.mark.parametrize("text", ["5", '"x"', "null", '{"a": {".value": 1, ".priority": 2}}', '["a", null, "b"]'])
def test_small_files(tool: Tool, tree: Tree, text: str) -> None:
    tree.put("old", 1)
    tool("import", data=text)
    assert plain(tree.get(format="export")) == plain(json.loads(text))
    assert plain(json.loads(tool("export"))) == plain(json.loads(text))


@pytest.mark.parametrize("text", ["", "{", '{"a": 1', "[1, 2", '{"a": 1} x', "{'a': 1}"])
def test_files_that_are_no_json(tool: Tool, text: str) -> None:
    assert tool.run("import", data=text).returncode == 1
    large = '{"big": "' + "x" * 1_200_000 + '", "rest": ' + (text or "?")
    assert tool.run("import", data=large).returncode == 1
