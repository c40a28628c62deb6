"""The requests of Firebase's command line tool, of the Emulator UI and of the rules testing library.

As their sources have them: firebase-tools (`src/…`), firebase-tools-ui (`UI: src/…`) and firebase-js-sdk (`packages/…`). Each
test names the file.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from endtoend.database_wire import Wire
from endtoend.rest import Reply, Rest
from endtoend.trees import OWNER, Tree, failure
from support.program import BINARY, program
from support.tokens import unsigned

DENIED = (401, "Permission denied")


# Realtime Database: the commands `database:…`


class Remove:
    """`firebase database:remove`: src/database/remove.ts, removeRemote.ts and listRemote.ts. Its requests, in its order."""

    REQUESTS_MAX = 200

    def __init__(self, tree: Tree, *, disable_triggers: bool = False) -> None:
        self.tree = tree
        self.triggers = "true" if disable_triggers else "false"
        self.requests: list[str] = []

    def _send(self, verb: str, path: str, body: bytes | None, **parameters: str) -> Reply:
        self.requests.append(f"{verb} {path} {(body or b'').decode()[:60]}".strip())
        assert len(self.requests) <= self.REQUESTS_MAX, self.requests[:20]
        target = f"{quote(path)}.json?" + urlencode({"ns": self.tree.namespace, **parameters})
        return self.tree.raw(verb, target, body, {**OWNER, "Content-Type": "application/json"})

    def _patch(self, path: str, body: Any) -> bool:
        reply = self._send(
            "PATCH",
            path,
            json.dumps(body).encode(),
            print="silent",
            writeSizeLimit="tiny",
            disableTriggers=self.triggers,
        )
        return reply.status < 400

    def _list(self, path: str, count: int) -> list[str]:
        reply = self._send("GET", path, None, shallow="true", limitToFirst=str(count))
        assert reply.status == 200, reply.content
        value = reply.json
        if isinstance(value, str):
            return [str(index) for index in range(len(value))]  # JavaScript's Object.keys
        return list(value) if isinstance(value, dict) else []

    def run(self, path: str) -> bool:
        if self._patch(path, None):
            return True
        listed = 100
        low, high, size = 1, 204801, 25
        while True:
            names = self._list(path, listed)
            if not names:
                return False
            chunks = [names[start : start + size] for start in range(0, len(names), size)]
            small = sum(self._remove(path, chunk) for chunk in chunks)
            if small > len(chunks) / 2:
                low, size = size, min(size * 2, (high + size) // 2)
            else:
                high, size = size, (low + size) // 2
            listed = listed * 2 if listed * 2 <= 204800 else 204800 // size * size

    def _remove(self, path: str, names: list[str]) -> bool:
        if len(names) == 1:
            return self.run(f"{path.rstrip('/')}/{names[0]}")
        if self._patch(path, dict.fromkeys(names)):
            return True
        middle = len(names) // 2
        self._remove(path, names[:middle])
        self._remove(path, names[middle:])
        return False


class TestRemove:
    @pytest.mark.parametrize(
        "value",
        [
            1,
            "text",
            True,
            {"only": 1},
            {"x": 1, "y": 2},
            {"a": {"b": {"c": {"d": 1}}}},
            {str(number): {"n": number} for number in range(300)},
            None,
        ],
        ids=["number", "string", "boolean", "one child", "children", "nested", "many", "nothing"],
    )
    def test_a_location_is_deleted_by_one_request(self, tree: Tree, value: Any) -> None:
        tree.put("", {"here": value, "beside": 1})
        command = Remove(tree)
        assert command.run("/here")
        assert command.requests == ["PATCH /here null"]
        assert tree.get() == {"beside": 1}

    def test_the_root(self, tree: Tree) -> None:
        tree.put("", {"a": 1, "b": {"c": 2}})
        assert Remove(tree).run("/") and tree.get() is None

    def test_what_is_too_large_is_deleted_in_parts(self, tree: Tree) -> None:
        # Five strings of 1 MiB are more than a `tiny` write; a string of 5 MiB has no parts.
        tree.put("big", {"many": {f"k{number}": "x" * (1 << 20) for number in range(5)}, "one": "y" * (5 << 20)})
        command = Remove(tree, disable_triggers=True)
        command.run("/big")
        assert tree.get() is None
        assert len(command.requests) < 20, command.requests

    def test_what_is_answered_and_who_may(self, tree: Tree) -> None:
        tree.put("a", {"b": 1, "c": 2})
        silent = tree.send("PATCH", "a/b", "null", OWNER, print="silent")
        assert (silent.status, silent.content) == (204, b"")
        assert tree.send("PATCH", "a/c", " null\n", OWNER).json is None
        assert tree.get() is None
        tree.put("a", {"b": 1})
        tree.rules({".read": True, "a": {"b": {".write": "!newData.exists()"}, "c": {".write": False}}})
        assert failure(tree.send("PATCH", "a", "null")) == DENIED
        assert failure(tree.send("PATCH", "a/c", "null")) == DENIED
        assert tree.send("PATCH", "a/b", "null").status == 200 and tree.get() is None

    @pytest.mark.parametrize("body", ["1", '"x"', "true", "[1]", "[]", "nul", "null null", "nullx", "", " "])
    def test_nothing_else_without_names_is_an_update(self, tree: Tree, body: str) -> None:
        # src/database/import.ts: "we cannot PATCH primitives and arrays".
        tree.put("a", {"b": 1})
        assert failure(tree.send("PATCH", "a", body, OWNER))[0] == 400
        assert failure(tree.send("PATCH", "a/.priority", "null", OWNER))[0] == 400
        assert tree.get("a") == {"b": 1}

    def test_listeners_get_the_deletion(self, tree: Tree, address: str) -> None:
        tree.put("a", {"b": 1})
        with Wire(address, tree.namespace) as wire:
            wire.ok("q", {"p": "/a", "h": ""})
            wire.pushes.clear()
            assert tree.send("PATCH", "a", "null", OWNER).status == 200
            assert wire.push() == {"a": "d", "b": {"p": "a", "d": None}}

    def test_an_update_over_a_socket_has_names(self, tree: Tree, address: str) -> None:
        # No SDK sends it: their `update` takes an object only.
        tree.put("a", 1)
        with Wire(address, tree.namespace) as wire:
            assert wire.call("m", {"p": "/a", "d": None})["s"] != "ok"
        assert tree.get("a") == 1


class TestCommands:
    def test_get(self, tree: Tree) -> None:
        # src/commands/database-get.ts
        tree.rules({".indexOn": ["age"]})
        tree.put("", {"ann": {"age": 3}, "bob": {".value": 4, ".priority": 1}})
        for parameters, expected in (
            ({}, {"ann": {"age": 3}, "bob": 4}),
            ({"shallow": "true"}, {"ann": True, "bob": True}),
            ({"format": "export"}, {"ann": {"age": 3}, "bob": {".value": 4, ".priority": 1}}),
            ({"print": "pretty", "orderBy": '"$key"', "startAt": '"b"', "limitToFirst": "1"}, {"bob": 4}),
            ({"orderBy": '"$key"', "equalTo": '"ann"'}, {"ann": {"age": 3}}),
            ({"orderBy": '"age"', "endAt": "3", "limitToLast": "1"}, {"ann": {"age": 3}}),
        ):
            assert tree.get("", OWNER, **parameters) == expected
        assert "error" in tree.send("GET", "", headers=OWNER, orderBy='"none"').json

    def test_set_update_push(self, tree: Tree) -> None:
        # src/commands/database-set.ts, -update.ts, -push.ts: the body is a stream, so there is no length.
        def send(verb: str, path: str, body: str, **parameters: str) -> Reply:
            target = f"/{path}.json?" + urlencode({"ns": tree.namespace, **parameters})
            tree.connection.request(
                verb, target, iter([body.encode()]), {**OWNER, "Transfer-Encoding": "chunked"}, encode_chunked=True
            )
            response = tree.connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read())

        assert send("PUT", "a", '{"x": 1}').status == 200
        assert send("PATCH", "a", '{"y": 2}', disableTriggers="true").status == 200
        name = send("POST", "a/list", "3").json["name"]
        assert tree.get("a") == {"x": 1, "y": 2, "list": {name: 3}}

    def test_import(self, tree: Tree) -> None:
        # src/database/import.ts: nothing may be there, then chunks in parallel.
        assert tree.send("GET", "foo", headers=OWNER, shallow="true").json is None
        for path, body in (
            ("foo", {"a": 100, "b/0": True, "b/1": "bar"}),
            ("foo/b/2", {"f": {"g": 0, "h": 1}, "i": "baz"}),
            ("foo/c", {"d": False}),
        ):
            assert tree.send("PATCH", path, body, OWNER, disableTriggers="true").status == 200
        assert tree.get("foo") == {
            "a": 100,
            "b": [True, "bar", {"f": {"g": 0, "h": 1}, "i": "baz"}],
            "c": {"d": False},
        }
        assert tree.send("GET", "foo", headers=OWNER, shallow="true").json

    def test_too_large_for_a_limit(self, tree: Tree) -> None:
        # src/database/removeRemote.ts takes any 400 for it.
        tree.put("a", {f"k{number}": "x" * (1 << 20) for number in range(5)})
        message = "Data to write exceeds the maximum size that can be modified with a single request."
        assert failure(tree.send("PATCH", "a", "null", OWNER, writeSizeLimit="tiny")) == (400, message)
        assert tree.send("PATCH", "a", "null", OWNER, writeSizeLimit="small").status == 200

    @pytest.mark.parametrize(
        "name", ["defaultWriteSizeLimit", "strictTriggerValidation", "profile", "rulesets", "ruleset_labels"]
    )
    def test_settings_that_are_not_there(self, tree: Tree, name: str) -> None:
        # src/commands/database-settings-get.ts and -set.ts, src/profiler.ts, src/database/metadata.ts
        for verb, body in (("GET", None), ("PUT", '"small"'), ("POST", "{}")):
            assert failure(tree.send(verb, f".settings/{name}", body, OWNER))[0] in (404, 405)


# Realtime Database: emulators


class TestDatabaseEmulator:
    def test_export(self, tree: Tree) -> None:
        # src/emulator/hubExport.ts: a namespace whose answer is null has nothing to export.
        tree.get()
        empty = tree.send("GET", "", headers=OWNER, shallow="true", limitToFirst="1")
        assert (empty.status, empty.json) == (200, None)
        tree.put("", {"a": {".value": 1, ".priority": "p"}, "b": 2})
        assert tree.send("GET", "", headers=OWNER, shallow="true", limitToFirst="1").json == {"a": True}
        names = [each["name"] for each in tree.send("GET", ".inspect/databases", headers=OWNER).json]
        assert tree.namespace in names
        exported = tree.send("GET", "", headers=OWNER, format="export").json
        assert exported == {"a": {".value": 1, ".priority": "p"}, "b": 2}

    def test_shallow_queries_that_find_nothing(self, tree: Tree) -> None:
        tree.put("a", {"b": 1})
        window = {"shallow": "true", "limitToFirst": "1", "startAfter": "b"}
        assert tree.send("GET", "a", headers=OWNER, **window).json == {}
        assert tree.send("GET", "none", headers=OWNER, **window).json is None

    def test_import_and_rules(self, tree: Tree) -> None:
        # src/emulator/databaseEmulator.ts
        headers = {**OWNER, "Content-Type": "application/json"}
        target = f"/.json?ns={tree.namespace}&disableTriggers=true&writeSizeLimit=unlimited"
        assert tree.raw("PUT", target, b'{"a": 1}', headers).status == 200
        assert tree.get() == {"a": 1}
        reply = tree.send("PUT", ".settings/rules", '{"rules": {".read": "nonsense("}}', OWNER)
        assert reply.status == 400 and reply.json["error"]

    def test_the_list_of_databases_needs_no_credential_in_local_development(self, tree: Tree, tmp_path: Path) -> None:
        # UI: src/components/Database/DatabaseContainer.tsx
        tree.put("a", 1)
        for parameters in ({}, {"auth": unsigned("ann")}):
            assert {"name": tree.namespace} in tree.send("GET", ".inspect/databases", **parameters).json
        foreign = tree.send("GET", ".inspect/databases", headers={"Origin": "http://elsewhere.example"})
        assert foreign.status == 403


class TestUpload:
    """UI: src/components/Database/useImport.ts, since firebase-tools-ui#411."""

    BOUNDARY = "----WebKitFormBoundary7MA4YWxkTrZu0gW"

    def form(self, *parts: tuple[str, str], boundary: str = BOUNDARY) -> bytes:
        lines = b""
        for head, content in parts:
            lines += f"--{boundary}\r\n{head}\r\n\r\n{content}\r\n".encode()
        return lines + f"--{boundary}--\r\n".encode()

    def file(self, content: str) -> tuple[str, str]:
        head = 'Content-Disposition: form-data; name="myFile"; filename="data.json"\r\nContent-Type: application/json'
        return head, content

    def upload(
        self,
        tree: Tree,
        path: str,
        body: bytes,
        kind: str | None = None,
        headers: dict[str, str] | None = None,
        **parameters: str,
    ) -> Reply:
        asked = {"ns": tree.namespace, "writeSizeLimit": "unlimited", **parameters}
        sent = {"Content-Type": kind or f"multipart/form-data; boundary={self.BOUNDARY}", **(headers or {})}
        return tree.raw("POST", f"/{path}.upload?" + urlencode(asked), body, sent)

    @pytest.mark.parametrize("path", ["", "a/", "a%20b/c/"])
    def test_a_file_replaces_a_location(self, tree: Tree, path: str) -> None:
        tree.put("a", {"old": 1})
        body = self.form(self.file('{"x": {".value": 1, ".priority": 2},\r\n "y": [true, "\u00e4"]}\n'))
        reply = self.upload(tree, path, body, access_token="owner", disableTriggers="true")
        assert (reply.status, reply.json) == (200, {"status": "ok"})
        assert reply.headers["access-control-allow-origin"] == "*"
        location = path.strip("/")
        assert tree.get(location) == {"x": 1, "y": [True, "\u00e4"]}
        assert tree.get(location, format="export")["x"] == {".value": 1, ".priority": 2}

    def test_fields_beside_the_file(self, tree: Tree) -> None:
        field = ('Content-Disposition: form-data; name="note"', '{"not": "this"}')
        assert self.upload(tree, "a/", self.form(field, self.file('"--x"'), field), access_token="owner").status == 200
        assert tree.get("a") == "--x"

    def test_quoted_boundaries_and_large_files(self, tree: Tree) -> None:
        text = json.dumps({f"k{number}": "\\r\\n--b" * 2000 for number in range(100)})
        body = b"preamble\r\n" + self.form(self.file(text), boundary="b x") + b"epilogue"
        reply = self.upload(tree, "a/", body, 'multipart/form-data; charset=utf-8; boundary="b x"', access_token="owner")
        assert reply.status == 200 and tree.get("a") == json.loads(text)

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("application/json", b'{"a": 1}'),
            ("multipart/form-data", b"--x\r\n\r\n1\r\n--x--"),
            ("multipart/form-data; boundary=" + "x" * 71, b""),
            ('multipart/form-data; boundary=""', b"--\r\n\r\n1\r\n----"),
            ("multipart/form-data; boundary=x", b""),
            ("multipart/form-data; boundary=x", b"--x"),
            ("multipart/form-data; boundary=x", b"--x--"),
            ("multipart/form-data; boundary=x", b"--x\r\nA: b\r\n\r\n1"),
            ("multipart/form-data; boundary=x", b"--x\r\nA: b\r\n1\r\n--x--"),
            ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="f"\r\n\r\n1\r\n--x--'),
            ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; filename="f"\r\n\r\n{\r\n--x--'),
        ],
    )
    def test_what_is_no_form_with_a_file(self, tree: Tree, kind: str, body: bytes) -> None:
        tree.put("a", 1)
        assert failure(self.upload(tree, "a/", body, kind, access_token="owner"))[0] == 400
        assert tree.get() == {"a": 1}

    def test_rules_decide_for_users(self, tree: Tree) -> None:
        tree.rules({".read": True, "a": {".write": "auth != null"}})
        body = self.form(self.file("7"))
        assert failure(self.upload(tree, "a/", body)) == DENIED
        assert failure(self.upload(tree, "", body, auth=unsigned("ann"))) == DENIED
        assert self.upload(tree, "a/", body, auth=unsigned("ann")).status == 200 and tree.get("a") == 7
        page = self.upload(tree, "a/", body, headers={"Origin": "http://elsewhere.example"}, access_token="owner")
        assert page.status == 403

    @pytest.mark.parametrize("header", ["if-match", "x-hearth-once"])
    def test_headers_on_which_a_sender_relies(self, tree: Tree, header: str) -> None:
        tree.put("a", 1)
        body = self.form(self.file("7"))
        reply = self.upload(tree, "a/", body, headers={header: "0123456789abcdef0123456789abcdef"}, access_token="owner")
        assert failure(reply)[0] == 400 and tree.get("a") == 1

    def test_other_methods_and_locations(self, tree: Tree) -> None:
        for verb in ("GET", "PUT", "DELETE"):
            assert failure(tree.raw(verb, f"/a/.upload?ns={tree.namespace}"))[0] == 405
        body = self.form(self.file("7"))
        for path in (".settings/", "a/.priority/", "a$/"):
            assert self.upload(tree, path, body, access_token="owner").status in (400, 404)


class TestBounds:
    """The REST client of the web SDK (packages/database/src/core/view/QueryParams.ts), firebase-js-sdk#8487."""

    MESSAGE = "Constraint key field must be a valid key name"

    @pytest.fixture
    def people(self, tree: Tree) -> Tree:
        tree.rules({".read": True, "people": {".indexOn": ["age", ".value"]}})
        tree.put("people", {"ann": {"age": 9}, "bob": {"age": 10}, "cy": {"age": 11}})
        return tree

    KEYS = ("[MAX_NAME]", "[MIN_NAME]", "a/b", "a.b", "", "a$", "a#", "a]", "\u0001", "x" * 769)

    @pytest.mark.parametrize("order", ["age", "$value", "$priority"])
    @pytest.mark.parametrize("name", ["startAt", "startAfter", "endAt", "endBefore", "equalTo"])
    def test_keys_that_are_none(self, people: Tree, order: str, name: str) -> None:
        for key in self.KEYS:
            asked = {"orderBy": json.dumps(order), name: f"10,{json.dumps(key)}"}
            assert failure(people.send("GET", "people", **asked)) == (400, self.MESSAGE), key

    def test_keys_that_are(self, people: Tree) -> None:
        assert people.get("people", orderBy='"age"', startAfter='10,"bob"') == {"cy": {"age": 11}}
        assert people.get("people", orderBy='"age"', startAt='10,"b,\u00e4"') == people.get(
            "people", orderBy='"age"', startAt="10"
        )

    def test_over_a_socket_they_are_the_ends(self, people: Tree, address: str) -> None:
        with Wire(address, people.namespace) as wire:
            for name, found in (("[MIN_NAME]", ["bob", "cy"]), ("[MAX_NAME]", ["cy"])):
                query = {"i": "age", "sp": 10, "sn": name}
                wire.ok("q", {"p": "/people", "q": query, "t": 1, "h": ""})
                assert sorted(wire.push()["b"]["d"]) == found
                wire.ok("n", {"p": "/people", "q": query, "t": 1})
                wire.pushes.clear()


# Transactions of the web SDK


class TestHashesOfTheWebSDK:
    """`LeafNode.hash` with `doubleToIEEE754String` (packages/database/src/core/util/util.ts), run in Node.js 20."""

    # A value, and its hash as the SDK computes it.
    CASES: list[tuple[Any, str]] = [
        (63.99999999999999, "PJmtFwMdaAcDnQ3acc9zgNHNABM="),
        (9007199254740991, "m4qsp/5BbIWTdjthNlnOX+WCTB0="),
        (-9007199254740991, "NGl7AUIW0RH/3UiaD8yEnh8PUAc="),
        (9007199254740990, "oXp82wHfjfrMRLLN/K+VQZoGiHE="),
        (9007199254740989, "oXp82wHfjfrMRLLN/K+VQZoGiHE="),
        (0.9999999999999999, "08NQIM0Rfq3ktu3BkpbKbtaWDwI="),
        (9.444732965739288e+21, "mD4/stOq9+rF4zq7wH+eYkltmpo="),
        (1.862645149230957e-09, "7d5QMiELKDnWdrss5Z2LtOES7JA="),
        (4.450147717014403e-308, "O5l9DxuCo6i/M7tWjHQUB4Tnuno="),
        (1e-300, "gAV59vXFMUsME/Mb0qgszm4v4BU="),
        (1.7976931348623157e+308, "8R+ekVQmxs6ZWP0fdzFHxVeGnWo="),
        (
            {"a": 63.99999999999999, "b": {"c": 9007199254740991, "d": "x"}, "e": [1, 2, 31.999999999999996]},
            "KLa7YzdtAuc1dxzugs8OcY6Ko4g=",
        ),
        (
            {
                "list": {"x": {"n": 9007199254740991}, "y": {"n": 127.99999999999999}, "z": {"n": 0.1}},
                ".priority": 63.99999999999999,
            },
            "ivPWYfxQ5c7zdk/Y8hLNqvw3Eto=",
        ),
        ({".value": 1, ".priority": 9007199254740991}, "N9AqUrf+l65eiqbvd8+0Dv9i+oQ="),
        (
            {"p": {".value": 9007199254740991, ".priority": 2}, "q": {".value": 3, ".priority": 1}},
            "C2mVpewDevfOMoWDYdM//6JKymg=",
        ),
    ]

    @pytest.mark.parametrize(("value", "hashed"), CASES)
    def test_a_transaction_is_made(self, tree: Tree, address: str, value: Any, hashed: str) -> None:
        tree.put("a", value)
        with Wire(address, tree.namespace) as wire:
            assert wire.call("p", {"p": "/a", "d": 1, "h": "x" + hashed[1:]})["s"] == "datastale"
            wire.ok("p", {"p": "/a", "d": {"done": True}, "h": hashed})
        assert tree.get("a") == {"done": True}

    def test_the_right_hash_is_taken_too(self, tree: Tree, address: str) -> None:
        tree.put("a", 63.99999999999999)
        tag = tree.send("GET", "a", headers={"X-Firebase-ETag": "true"}).headers["etag"]
        assert tag != self.CASES[0][1]
        with Wire(address, tree.namespace) as wire:
            wire.ok("p", {"p": "/a", "d": 63.99999999999999, "h": tag})

    def test_a_tag_is_exact(self, tree: Tree) -> None:
        tree.put("a", 63.99999999999999)
        assert tree.send("PUT", "a", "1", {"if-match": self.CASES[0][1]}).status == 412


# Cloud Firestore: the commands `firestore:…`


@pytest.fixture
def database(rest: Rest) -> str:
    return f"/emulator/v1/{rest.database}"


def names(rest: Rest) -> list[str]:
    body = {"structuredQuery": {"from": [{"allDescendants": True}]}}
    found = [each["document"]["name"] for each in rest.call("runQuery", body).json if "document" in each]
    return sorted(name.removeprefix(rest.root + "/") for name in found)


DOCUMENTS = ["a/1", "a/1/b/1", "a/1/b/1/c/1", "a/1/b/2", "a/1/x/1", "a/10", "a/2", "ab/1", "b/1", "q/missing/r/1"]


@pytest.fixture
def documents(rest: Rest) -> Rest:
    for path in DOCUMENTS:
        assert rest.put(path, {}).status == 200
    return rest


class TestDelete:
    """src/firestore/delete.ts and src/gcp/firestore.ts"""

    LOWEST = "__id-9223372036854775808__"

    def batch(self, rest: Rest, path: str, after: str | None = None, limit: int = 7500) -> list[str]:
        segments = path.split("/")
        query: dict[str, Any] = {
            "limit": limit,
            "from": [{"allDescendants": True}],
            "select": {"fields": [{"fieldPath": "__name__"}]},
            "orderBy": [{"field": {"fieldPath": "__name__"}}],
        }
        if len(segments) % 2:
            segments.pop()
            bounds = (
                ("GREATER_THAN_OR_EQUAL", f"{rest.root}/{path}/{self.LOWEST}"),
                ("LESS_THAN", f"{rest.root}/{path}\0/{self.LOWEST}"),
            )
            filters = [
                {"fieldFilter": {"field": {"fieldPath": "__name__"}, "op": op, "value": {"referenceValue": name}}}
                for op, name in bounds
            ]
            query["where"] = {"compositeFilter": {"op": "AND", "filters": filters}}
        if after:
            query["startAt"] = {"values": [{"referenceValue": after}], "before": False}
        reply = rest.call("runQuery", {"structuredQuery": query}, "/".join(segments))
        assert reply.status == 200, reply.content
        return [each["document"]["name"] for each in reply.json if "document" in each]

    def delete(self, rest: Rest, path: str) -> None:
        last = None
        while found := self.batch(rest, path, last, limit=2):
            writes = [{"delete": name} for name in found]
            assert len(rest.call("commit", {"writes": writes}).json["writeResults"]) == len(found)
            last = found[-1]
        if path.count("/") % 2:
            assert rest.send("DELETE", f"/v1/{rest.name(path)}").status == 200

    @pytest.mark.parametrize(
        ("path", "left"),
        [
            ("a", ["ab/1", "b/1", "q/missing/r/1"]),
            ("a/1", ["a/10", "a/2", "ab/1", "b/1", "q/missing/r/1"]),
            ("a/1/b", ["a/1", "a/1/x/1", "a/10", "a/2", "ab/1", "b/1", "q/missing/r/1"]),
            ("none", DOCUMENTS),
        ],
    )
    def test_recursively(self, documents: Rest, path: str, left: list[str]) -> None:
        self.delete(documents, path)
        assert names(documents) == left

    def test_all_collections(self, documents: Rest) -> None:
        reply = documents.call("listCollectionIds", {"pageSize": 2147483647})
        assert reply.json == {"collectionIds": ["a", "ab", "b", "q"]}
        for collection in reply.json["collectionIds"]:
            self.delete(documents, collection)
        assert names(documents) == []

    def test_queries_of_the_tool(self, documents: Rest) -> None:
        # src/gcp/firestore.ts `queryCollection` and `getDocuments`
        written = documents.call("runQuery", {"structuredQuery": {"from": [{"collectionId": "a"}]}}).json[0]["readTime"]
        # The tool's times have milliseconds: one that contains all writes is the next.
        while (now := datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")) <= written:
            pass
        body = {
            "structuredQuery": {"from": [{"collectionId": "a"}], "limit": 10},
            "explainOptions": {"analyze": True},
            "newTransaction": {"readOnly": {"readTime": now}},
        }
        reply = documents.call("runQuery", body)
        assert reply.status == 200 and sum("document" in each for each in reply.json) == 3
        paths = [documents.name(path) for path in ("a/1", "a/none")]
        found = documents.call("batchGet", {"documents": paths}).json
        assert [("found" in each, "missing" in each) for each in found] == [(True, False), (False, True)]


# Cloud Firestore: emulators


class TestFirestoreEmulator:
    def test_what_the_interface_lists(self, documents: Rest) -> None:
        # UI: src/components/Firestore/FirestoreEmulatedApiProvider.tsx
        def collections(parent: str) -> list[str]:
            reply = documents.send("POST", f"/v1/{documents.root}{parent}:listCollectionIds")
            assert reply.status == 200
            return reply.json.get("collectionIds", [])

        assert collections("") == ["a", "ab", "b", "q"]
        assert collections("/a/1") == ["b", "x"]
        assert collections("/a/2") == []
        reply = documents.get("q", "?mask.fieldPaths=_none_&pageSize=300&showMissing=true")
        assert reply.json["documents"] == [{"name": documents.name("q/missing")}]

    @pytest.mark.parametrize(
        ("path", "left"),
        [
            ("a/1/b", ["a/1", "a/1/x/1", "a/10", "a/2", "ab/1", "b/1", "q/missing/r/1"]),
            ("a/1", ["a/10", "a/2", "ab/1", "b/1", "q/missing/r/1"]),
            ("a", ["ab/1", "b/1", "q/missing/r/1"]),
            ("q/missing", [path for path in DOCUMENTS if not path.startswith("q/")]),
            ("none", DOCUMENTS),
            ("a/none", DOCUMENTS),
            ("", []),
        ],
    )
    def test_deleting_below_a_path(self, documents: Rest, database: str, path: str, left: list[str]) -> None:
        # UI: `useRecursiveDelete` and `useEjector`; the emulator deletes the same.
        target = f"{database}/documents" + (f"/{path}" if path else "")
        reply = documents.send("DELETE", target)
        assert (reply.status, reply.json) == (200, {})
        assert names(documents) == left

    def test_deleting_names_that_need_encoding(self, rest: Rest, database: str) -> None:
        odd = "\u00e4 b%c"
        for path in (f"{quote(odd)}/{quote(odd)}/d/1", f"{quote(odd)}/2", "e/__id7__/f/1"):
            assert rest.put(path, {}).status == 200
        for path in (f"{quote(odd)}/{quote(odd)}", "e/__id7__"):
            assert rest.send("DELETE", f"{database}/documents/{path}").status == 200
        assert names(rest) == [f"{odd}/2"]

    @pytest.mark.parametrize("path", ["a//b", "a/..", "a/%2Fb", "__a__/1", "/", "", "a/", "a/%FF"])
    @pytest.mark.emulator_differs("a slash at the end deletes nothing, and is answered with 200")
    def test_paths_that_are_refused(self, documents: Rest, database: str, path: str) -> None:
        reply = documents.send("DELETE", f"{database}/documents/{path}")
        assert reply.status == 400 and reply.json["error"]["status"] == "INVALID_ARGUMENT"
        assert names(documents) == DOCUMENTS

    def test_more_documents_than_one_commit_has(self, rest: Rest, database: str) -> None:
        for start in range(0, 1200, 400):
            writes = [{"update": {"name": rest.name(f"c/{n}/d/x")}} for n in range(start, start + 400)]
            assert rest.call("commit", {"writes": writes}).status == 200
        assert rest.send("DELETE", f"{database}/documents/c").status == 200
        assert names(rest) == []

    def test_a_database_that_is_not_there(self, rest: Rest) -> None:
        target = f"/emulator/v1/projects/{rest.project}/databases/none/documents/a/1"
        assert rest.send("DELETE", target).json == {}

    def test_rules_are_set_and_read(self, rest: Rest, address: str) -> None:
        # src/emulator/firestoreEmulator.ts, packages/rules-unit-testing/src/impl/rules.ts
        target = f"/emulator/v1/projects/{rest.project}:securityRules"
        first = rest.send("GET", target).json["rules"]["files"]
        assert len(first) == 1 and "allow read, write: if true;" in first[0]["content"]
        content = "rules_version = '2';\nservice cloud.firestore {\n  match /a/{b} { allow read: if true; }\n}\n"
        body = {"ignore_errors": True, "rules": {"files": [{"name": "security.rules", "content": content}]}}
        assert rest.send("PUT", target, body).json.get("issues", []) == []
        assert rest.send("GET", target).json == {"rules": {"files": [{"content": content, "name": "security.rules"}]}}
        reply = rest.send("PUT", target, {"rules": {"files": [{"content": "nonsense"}]}})
        assert reply.status == 400
        broken = {"ignore_errors": True, "rules": {"files": [{"name": "security.rules", "content": "nonsense"}]}}
        reply = rest.send("PUT", target, broken)
        assert reply.status == 200 and reply.json["issues"][0]["severity"] == "ERROR"
        assert reply.json["issues"][0]["sourcePosition"]["line"] == 1
        unnamed = {"rules": {"files": [{"content": content}]}}
        headers = {"Content-Type": "text/plain;charset=UTF-8"}
        assert rest.send("PUT", target, json.dumps(unnamed).encode(), headers).status == 200
        assert rest.send("GET", target).json["rules"]["files"][0]["content"] == content

    def test_clearing_without_a_credential(self, documents: Rest, database: str) -> None:
        # packages/rules-unit-testing/src/impl/test_environment.ts `clearFirestore`
        connection = documents.connection
        connection.request("DELETE", f"{database}/documents")
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())) == (200, {})
        assert names(documents) == []

    @pytest.mark.parametrize(
        ("verb", "target"),
        [("POST", "/reset"), ("GET", "/emulators"), ("GET", "/requests")],
    )
    @pytest.mark.emulator_differs("it has /reset")
    def test_what_is_not_there(self, documents: Rest, verb: str, target: str) -> None:
        assert documents.send(verb, target).status == 404
        assert names(documents) == DOCUMENTS

    @pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")
    def test_elsewhere_they_are_not_served(self, tmp_path: Path) -> None:
        with program(tmp_path, "--memory", "--no-emulator") as server:
            tree = Tree(server.address, "demo")
            project = "/emulator/v1/projects/demo"
            documents = f"{project}/databases/(default)/documents"
            for verb, target in (
                ("GET", f"{project}:securityRules"),
                ("DELETE", documents),
                ("DELETE", f"{documents}/a"),
                ("DELETE", f"{documents}/a/1"),
            ):
                assert tree.raw(verb, target, headers=OWNER).status == 404

    def test_ready(self, rest: Rest) -> None:
        reply = rest.send("GET", "/")
        assert reply.status == 200 and reply.content.strip() == b"Ok"
