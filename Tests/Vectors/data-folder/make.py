"""Writes the data folder beside this file anew; see the README."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BINARY = str(Path(os.environ["HEARTH_BINARY"]).resolve())
ROOT = "/v1/projects/demo/databases"
OWNER = {"Authorization": "Bearer owner"}

VALUES: dict[str, Any] = {
    "null": {"nullValue": None},
    "boolean": {"booleanValue": True},
    "integer": {"integerValue": "-9007199254740993"},
    "double": {"doubleValue": 0.1},
    "nan": {"doubleValue": "NaN"},
    "time": {"timestampValue": "2024-02-29T12:34:56.789012Z"},
    "text": {"stringValue": "größer, 日本, \U0001f525"},
    "bytes": {"bytesValue": "AAH/"},
    "place": {"geoPointValue": {"latitude": 52.5, "longitude": -13.4}},
    "link": {"referenceValue": "projects/demo/databases/(default)/documents/c/d"},
    "list": {"arrayValue": {"values": [{"integerValue": "1"}, {"stringValue": "two"}]}},
    "map": {"mapValue": {"fields": {"a": {"mapValue": {"fields": {"b": {"integerValue": "1"}}}}}}},
    "long": {"stringValue": "x" * 3000},
}


def main() -> None:
    data = HERE / "hearth-data"
    shutil.rmtree(data, ignore_errors=True)
    server = subprocess.Popen([BINARY, "serve", "--port", "0"], cwd=HERE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = next(int(line.rsplit(":", 1)[1]) for line in server.stdout if "FIRESTORE_EMULATOR_HOST=" in line)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def send(method: str, path: str, body: Any = None) -> Any:
        connection.request(method, path, None if body is None else json.dumps(body), OWNER)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (path, answer.status, content)
        return json.loads(content)

    index = {"queryScope": "COLLECTION", "fields": [{"fieldPath": name, "order": "ASCENDING"} for name in ("a", "b")]}
    send("POST", f"{ROOT}/(default)/collectionGroups/c/indexes", index)
    send("PATCH", f"{ROOT}/(default)/documents/kinds/all", {"fields": VALUES})
    for number in range(20):
        fields = {"a": {"integerValue": str(number % 3)}, "b": {"integerValue": str(number)}}
        send("PATCH", f"{ROOT}/(default)/documents/c/{number:02}", {"fields": fields})
        send("PATCH", f"{ROOT}/(default)/documents/c/{number:02}/below/x", {"fields": {}})
    send("PATCH", f"{ROOT}/(default)/documents/c/00", {"fields": {"b": {"stringValue": "changed"}}})
    send("DELETE", f"{ROOT}/(default)/documents/c/19")
    send("PATCH", f"{ROOT}/a-second-one/documents/c/d", {"fields": {"n": {"integerValue": "1"}}})
    send("PUT", "/.settings/rules.json?ns=golden", {"rules": {".read": True, "list": {".indexOn": ["n", ".value"]}}})
    for number in range(20):
        send("PUT", f"/list/k{number:02}.json?ns=golden", {"n": number % 5, "text": f"number {number}"})
    send("PUT", "/long.json?ns=golden", "y" * 3000)
    send("PUT", "/kinds.json?ns=golden", {"a": True, "b": -1.5, "c": "größer", "d": {"0": 1, "10": 2}})
    send("PUT", "/first.json?ns=golden", {".priority": 3, ".value": "with a priority"})
    send("DELETE", "/list/k19.json?ns=golden")
    paths = [
        f"{ROOT}/(default)/documents/kinds/all",
        f"{ROOT}/(default)/documents/c?pageSize=100",
        f"{ROOT}/(default)/documents/c?pageSize=100&orderBy=a,b",
        f"{ROOT}/(default)/documents/c/01/below/x",
        f"{ROOT}/(default)/collectionGroups/c/indexes",
        f"{ROOT}/a-second-one/documents/c/d",
        "/.json?ns=golden",
        "/first.json?ns=golden&format=export",
        "/list.json?ns=golden&orderBy=%22n%22&equalTo=3",
        "/.settings/rules.json?ns=golden",
    ]
    # Until the index is ready.
    while send("GET", paths[4])["indexes"][0]["state"] != "READY":
        time.sleep(0.05)
    content = {path: send("GET", path) for path in paths}
    server.terminate()
    server.wait(20)
    (HERE / "content.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


main()
