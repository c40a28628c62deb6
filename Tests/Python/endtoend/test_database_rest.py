"""The Realtime Database over REST: methods, parameters, queries, tags, errors, settings."""

from __future__ import annotations

import json
import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from endtoend.trees import OWNER, Tree, failure, production, signed, write_rules
from support.patience import PATIENCE
from support.program import Program, assert_sound, program
from support.tokens import unsigned

DENIED = (401, "Permission denied")
BAD_JSON = (400, "Invalid data; couldn't parse JSON object, array, or value.")
BAD_OBJECT = (
    400,
    "Invalid data; couldn't parse JSON object. Are you sending a JSON object with valid key names?",
)
BAD_PATH = (400, "Invalid path: Invalid token in path")
PEOPLE = {
    "ann": {"age": 30, "name": {"first": "Ann"}},
    "bob": {"age": 25, "name": {"first": "Bob"}},
    "cy": {"age": 30.5, "name": {"first": "Cy"}},
    "dan": {"name": {"first": "Dan"}},
    "eve": {"age": "old", "name": {"first": "Eve"}},
}


def bad_key(line: int, column: int) -> tuple[int, str]:
    place = f"{line}:{column}"
    return 400, (
        f"Invalid data; couldn't parse key beginning at {place}. "
        "Key value can't be empty or contain $ # [ ] / or ."
    )


# Methods


class TestMethods:
    def test_what_is_put_is_got(self, tree: Tree) -> None:
        value = {"a": 1, "b": [True, "x"], "c": {"d": 2.5, "e": -3}}
        reply = tree.send("PUT", "here", value)
        assert (reply.status, reply.json) == (200, value)
        assert reply.headers["content-type"] == "application/json; charset=utf-8"
        assert reply.headers["cache-control"] == "no-cache"
        assert tree.get("here") == value
        assert tree.get("here/c/d") == 2.5
        assert tree.get() == {"here": value}

    def test_nothing_is_null(self, tree: Tree) -> None:
        assert tree.get() is None and tree.get("a/b") is None

    @pytest.mark.parametrize("nothing", [None, {}, [], {"x": None}, [None, {}], {"x": {"y": []}}])
    def test_nothing_is_one_whatever_it_is_called(self, tree: Tree, nothing: Any) -> None:
        tree.put("a/b", 1)
        assert tree.send("PUT", "a/b", json.dumps(nothing)).json is None
        assert tree.get() is None

    @pytest.mark.parametrize(
        ("stored", "read"),
        [
            ({"0": "a", "1": "b", "2": "c"}, ["a", "b", "c"]),
            ({"0": "a", "2": "c"}, ["a", None, "c"]),
            ({"1": "b"}, [None, "b"]),
            ({"2": "c"}, {"2": "c"}),
            ({"1": "b", "3": "d"}, [None, "b", None, "d"]),
            ({"01": "x", "1": "y"}, {"01": "x", "1": "y"}),
            ({"-1": "x", "0": "y"}, {"-1": "x", "0": "y"}),
            ({"0": "x", "a": "y"}, {"0": "x", "a": "y"}),
            (["zero", None, "two"], ["zero", None, "two"]),
        ],
    )
    def test_arrays(self, tree: Tree, stored: Any, read: Any) -> None:
        assert tree.put("list", stored) == read
        assert tree.get("list") == read

    def test_patch(self, tree: Tree) -> None:
        tree.put("a", {"x": 1, "y": {"z": 2, "w": 3}, "gone": 4})
        update = {"x": 10, "y/z": 20, "gone": None, "new/deep": {"v": 1}}
        reply = tree.send("PATCH", "a", update)
        assert (reply.status, reply.json) == (200, update)
        assert tree.get("a") == {"x": 10, "y": {"z": 20, "w": 3}, "new": {"deep": {"v": 1}}}

    def test_an_empty_patch(self, tree: Tree) -> None:
        assert tree.send("PATCH", "a", {}).json == {}

    def test_a_patch_is_all_or_nothing(self, tree: Tree) -> None:
        tree.rules({".read": True, "a": {".write": True, ".validate": "newData.isNumber()"}})
        assert failure(tree.send("PATCH", "", {"a": 1, "b": 2})) == DENIED
        assert failure(tree.send("PATCH", "", {"a": "x"})) == DENIED
        assert tree.get() is None
        assert tree.send("PATCH", "", {"a": 1}).status == 200

    @pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b/c", "a/b"), ("x/y", "x/y/z")])
    def test_paths_of_a_patch_must_not_overlap(self, tree: Tree, paths: tuple[str, str]) -> None:
        reply = tree.send("PATCH", "p", dict.fromkeys(paths, 1))
        assert reply.status == 400 and "error" in reply.json
        assert tree.get() is None

    def test_post(self, tree: Tree) -> None:
        names = [tree.send("POST", "list", f'"{number}"').json["name"] for number in range(5)]
        assert names == sorted(names) and all(len(name) == 20 for name in names)
        assert list(tree.get("list").values()) == ["0", "1", "2", "3", "4"]

    def test_posting_nothing(self, tree: Tree) -> None:
        assert len(tree.send("POST", "list", "null").json["name"]) == 20
        assert tree.get() is None

    def test_delete(self, tree: Tree) -> None:
        tree.put("a", {"b": 1, "c": 2})
        reply = tree.send("DELETE", "a/b")
        assert (reply.status, reply.json) == (200, None)
        assert tree.get() == {"a": {"c": 2}}
        assert tree.send("DELETE", "never/there").status == 200

    def test_head(self, tree: Tree) -> None:
        tree.put("a", "text")
        reply = tree.send("HEAD", "a")
        assert (reply.status, reply.content, reply.headers["content-length"]) == (200, b"", "6")

    @pytest.mark.parametrize("way", ["header", "parameter"])
    def test_methods_by_another_name(self, tree: Tree, way: str) -> None:
        def send(verb: str, body: Any = None) -> int:
            if way == "header":
                return tree.send("POST", "a", body, {"X-HTTP-Method-Override": verb}).status
            return tree.send("POST", "a", body, **{"x-http-method-override": verb}).status

        assert send("PUT", {"x": 1}) == 200 and tree.get("a") == {"x": 1}
        assert send("PATCH", {"y": 2}) == 200 and tree.get("a") == {"x": 1, "y": 2}
        assert send("GET") == 200
        assert send("DELETE") == 200 and tree.get("a") is None

    def test_other_methods(self, tree: Tree) -> None:
        assert failure(tree.send("TRACE", "a"))[0] == 405
        assert failure(tree.send("POST", "a", "1", {"X-HTTP-Method-Override": "FROB"}))[0] == 405

    def test_writing_below_and_above_a_leaf(self, tree: Tree) -> None:
        tree.put("a", "leaf")
        tree.put("a/b/c", 1)
        assert tree.get() == {"a": {"b": {"c": 1}}}
        tree.put("a", 2)
        assert tree.get() == {"a": 2}
        tree.send("DELETE", "a/b")
        assert tree.get() == {"a": 2}

    def test_the_content_type_does_not_matter(self, tree: Tree) -> None:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
            assert tree.send("PUT", "a", {"k": kind}, {"Content-Type": kind}).json == {"k": kind}

    def test_server_values(self, tree: Tree) -> None:
        before = int(time.time() * 1000)
        reply = tree.send("PUT", "a", {"t": {".sv": "timestamp"}, "n": {".sv": {"increment": 2}}})
        stamp = reply.json["t"]
        assert before <= stamp <= int(time.time() * 1000) and reply.json["n"] == 2
        update = {"n": {".sv": {"increment": 0.5}}, "t": {".sv": "timestamp"}, "u/v": {".sv": "timestamp"}}
        answer = tree.send("PATCH", "a", update).json
        assert answer["n"] == 2.5 and answer["t"] == answer["u/v"] >= stamp
        assert tree.get("a") == {"n": 2.5, "t": answer["t"], "u": {"v": answer["t"]}}

    def test_increments_of_many_writers_add_up(self, tree: Tree, address: str, project: str) -> None:
        def work() -> None:
            own = Tree(address, project)
            for _ in range(50):
                assert own.send("PUT", "n", {".sv": {"increment": 1}}).status == 200
            own.close()

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert tree.get("n") == 400


# Values


class TestValues:
    @pytest.mark.parametrize(
        ("written", "read"),
        [
            ("9223372036854775807", "9223372036854775807"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9007199254740993", "9007199254740993"),
            ("5.0", "5"),
            ("1e3", "1000"),
            ("-0.0", "0"),
            ("0.1", "0.1"),
            ("true", "true"),
            ('"\\u00e4\\ud83d\\ude00 \\n"', '"ä😀 \\n"'),
            ('"a\u0308"', '"a\u0308"'),
            ('""', '""'),
            (" [ 1 , 2 ] ", "[1,2]"),
        ],
    )
    def test_leaves(self, tree: Tree, written: str, read: str) -> None:
        assert tree.send("PUT", "v", written).content.decode() == read
        assert tree.send("GET", "v").content.decode() == read

    def test_spellings_of_a_letter_are_keys_of_their_own(self, tree: Tree) -> None:
        tree.put("k", {"\u00e4": 1, "a\u0308": 2})
        assert tree.get("k") == {"\u00e4": 1, "a\u0308": 2}
        assert tree.get("k/\u00e4") == 1 and tree.get("k/a\u0308") == 2

    def test_keys_of_every_kind(self, tree: Tree) -> None:
        keys = {"a b": 1, "x+y": 2, "q?&=": 3, "😀": 4, "%": 5, "a:b@c": 6, "-1": 7}
        tree.put("k", keys)
        assert tree.get("k") == keys
        for key, value in keys.items():
            assert json.loads(tree.raw("GET", f"/k/{escaped(key)}.json?ns={tree.namespace}").content) == value

    def test_priorities(self, tree: Tree) -> None:
        tree.put("a", {".value": 5, ".priority": "p"})
        tree.put("b", {"c": True, ".priority": 3})
        assert tree.get() == {"a": 5, "b": {"c": True}}
        with_priorities = {"a": {".value": 5, ".priority": "p"}, "b": {"c": True, ".priority": 3}}
        assert tree.get(format="export") == with_priorities
        assert tree.get("a/.priority") == "p"
        tree.put("a/.priority", 7)
        tree.send("PATCH", "", {"b/.priority": None})
        assert tree.get(format="export") == {"a": {".value": 5, ".priority": 7}, "b": {"c": True}}
        tree.put("a", 6)
        assert tree.get("a", format="export") == 6
        tree.put("none/.priority", 1)
        assert tree.get("none", format="export") is None


def escaped(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


# Addresses


class TestAddresses:
    def test_slashes_do_not_matter(self, tree: Tree) -> None:
        tree.put("a/b", 1)
        for path in ("/a/b.json", "//a//b.json", "/a/b/.json", "///a/b/.json"):
            assert tree.raw("GET", f"{path}?ns={tree.namespace}").json == 1
        assert tree.raw("GET", f"/.json?ns={tree.namespace}").json == {"a": {"b": 1}}

    def test_namespaces_know_nothing_of_each_other(self, tree: Tree) -> None:
        tree.put("a", 1)
        assert tree.raw("GET", f"/a.json?ns={tree.namespace}-other").json is None

    @pytest.mark.parametrize("host", ["{}.firebaseio.com", "{}.europe-west1.firebasedatabase.app", "{}.localhost:9000"])
    def test_the_host_names_a_namespace(self, tree: Tree, host: str) -> None:
        tree.put("a", 1)
        reply = tree.raw("GET", "/a.json", headers={"Host": host.format(tree.namespace)})
        assert (reply.status, reply.json) == (200, 1)

    def test_without_a_name_it_is_the_project_s(self, tree: Tree) -> None:
        standard = Tree(f"{tree.connection.host}:{tree.connection.port}", "demo-hearth-default-rtdb")
        standard.put(tree.namespace, 1)
        assert tree.raw("GET", f"/{tree.namespace}.json").json == 1
        standard.close()

    @pytest.mark.parametrize("name", ["", "a/b", "a%20b", "x" * 101, "%F0%9F%98%80"])
    def test_names_that_cannot_be(self, tree: Tree, name: str) -> None:
        assert failure(tree.raw("GET", f"/a.json?ns={name}"))[0] == 400

    @pytest.mark.parametrize(
        "path", ["a%2Fb", "a%23", "a%24b", "x/a.b", "%5B", "%5D", ".info/connected", "a%00", "a%1F", "a%7F", "%ZZ", "%FF"]
    )
    def test_places_that_cannot_be(self, tree: Tree, path: str) -> None:
        for verb in ("GET", "PUT", "DELETE"):
            body = b"1" if verb == "PUT" else None
            assert failure(tree.raw(verb, f"/{path}.json?ns={tree.namespace}", body)) == BAD_PATH

    def test_depth(self, tree: Tree) -> None:
        deepest = "/".join("abcdefgh" * 4)
        assert tree.put(deepest, 1) == 1
        assert tree.send("PUT", deepest + "/x", 1).status == 400
        assert tree.send("PUT", deepest[:-2], {"y": {"z": 1}}).status == 400
        assert tree.send("PATCH", deepest, {"z": 1}).status == 400
        assert tree.send("POST", deepest, 1).status == 400

    def test_long_keys(self, tree: Tree) -> None:
        assert tree.put("k" * 768, 1) == 1
        assert tree.send("PUT", "k" * 769, 1).status == 400
        assert tree.send("PUT", "a", {"ä" * 385: 1}).status == 400

    def test_who_forgets_json_is_told(self, tree: Tree) -> None:
        status, text = failure(tree.raw("GET", f"/a?ns={tree.namespace}"))
        assert status == 404 and ".json" in text

    def test_documents_of_firestore_may_end_so(self, tree: Tree, project: str) -> None:
        name = f"/v1/projects/{project}/databases/(default)/documents/c/x.json"
        assert tree.raw("PATCH", name, b'{"fields":{"n":{"integerValue":"1"}}}').status == 200
        assert tree.raw("GET", name).json["fields"] == {"n": {"integerValue": "1"}}


# Parameters


class TestParameters:
    def test_print(self, tree: Tree) -> None:
        tree.put("a", {"b": [1, 2], "c": {}, "d": 'q"{['})
        pretty = tree.send("GET", "a", print="pretty").content.decode()
        assert pretty == '{\n  "b" : [\n    1,\n    2\n  ],\n  "d" : "q\\"{["\n}\n'
        for verb, body in (("GET", None), ("PUT", "1"), ("PATCH", "{}"), ("POST", "1"), ("DELETE", None)):
            reply = tree.send(verb, "s", body, print="silent")
            assert (reply.status, reply.content) == (204, b""), verb

    def test_errors_keep_their_text_in_silence(self, tree: Tree) -> None:
        assert failure(tree.send("PUT", "a", "{", print="silent")) == BAD_JSON

    def test_shallow(self, tree: Tree) -> None:
        tree.put("", {"a": {"x": 1}, "b": 5, "c": [1, 2]})
        assert tree.get(shallow="true") == {"a": True, "b": True, "c": True}
        assert tree.get("c", shallow="true") == {"0": True, "1": True}
        assert tree.get("b", shallow="true") == 5
        assert tree.get("none", shallow="true") is None
        assert tree.get("a", shallow="false") == {"x": 1}

    def test_tools_page_by_bare_keys(self, tree: Tree) -> None:
        names = [f"k{number:03}" for number in range(250)]
        tree.put("p", {name: {"deep": {"value": number}} for number, name in enumerate(names)})
        found: list[str] = []
        parameters = {"shallow": "true", "limitToFirst": "100", "timeout": "5000ms"}
        while page := tree.get("p", **parameters):
            found += page
            parameters["startAfter"] = max(page)
        assert found == names

    def test_callback(self, tree: Tree) -> None:
        tree.put("a", {"b": 1})
        reply = tree.send("GET", "a", callback="app.got")
        assert reply.content.decode().removeprefix("/**/") == 'app.got({"b":1});'
        assert reply.headers["content-type"] == "application/javascript; charset=utf-8"
        assert tree.send("GET", "a", callback="alert(1)//").status == 400

    def test_download(self, tree: Tree) -> None:
        reply = tree.send("GET", "a", download='my "file".json')
        assert reply.headers["content-disposition"] == 'attachment; filename="my file.json"'

    @pytest.mark.parametrize("good", ["999ms", "3s", "15min", "900s", "900000ms"])
    def test_timeouts(self, tree: Tree, good: str) -> None:
        assert tree.send("GET", "a", timeout=good).status == 200

    @pytest.mark.parametrize("bad", ["16min", "901s", "0s", "-1s", "3", "s", "3h", "1.5s", "", "99999999999999999999s"])
    def test_timeouts_that_cannot_be(self, tree: Tree, bad: str) -> None:
        assert failure(tree.send("GET", "a", timeout=bad))[0] == 400

    def test_what_takes_too_long(self, tree: Tree) -> None:
        tree.put("a", {f"k{number}": "x" * 100 for number in range(20_000)})
        assert failure(tree.send("GET", "a", timeout="1ms")) == (400, "Query timed out.")
        assert len(tree.get("a", timeout="1min")) == 20_000

    def test_the_size_of_writes(self, tree: Tree) -> None:
        big = {f"k{number}": "x" * 100_000 for number in range(60)}
        too_big = (400, "Data to write exceeds the maximum size that can be modified with a single request.")
        assert failure(tree.send("PUT", "a", big, writeSizeLimit="tiny")) == too_big
        assert tree.get("a") is None
        assert tree.send("PUT", "a", big, writeSizeLimit="unlimited", print="silent").status == 204
        assert failure(tree.send("DELETE", "a", writeSizeLimit="tiny")) == too_big
        assert failure(tree.send("PATCH", "", {"a/k1": None, "a/k2": None, "b": 1}, writeSizeLimit="huge"))[0] == 400
        assert tree.send("PATCH", "", {"a/k1": None, "a/k2": None}, writeSizeLimit="tiny").status == 200
        assert tree.send("DELETE", "a", writeSizeLimit="medium").status == 200

    def test_only_administrators_write_without_events(self, tree: Tree) -> None:
        assert failure(tree.send("PUT", "a", 1, disableTriggers="true")) == (401, "Permission denied")
        assert tree.get("a") is None
        assert tree.send("PUT", "a", 1, OWNER, disableTriggers="true").status == 200
        assert tree.send("PUT", "a", 2, disableTriggers="false").status == 200
        assert tree.get("a", disableTriggers="true") == 2

    def test_unknown_parameters_are_left_alone(self, tree: Tree) -> None:
        assert tree.get("a", frob="1", alt="sse") is None


# Queries


class TestQueries:
    @pytest.fixture(autouse=True)
    def people(self, tree: Tree) -> None:
        tree.rules({"people": {".indexOn": ["age", "name/first"]}, "scores": {".indexOn": ".value"}})
        tree.put("people", PEOPLE)
        tree.put("scores", {"ann": 7, "bob": 9, "cy": 9, "dan": -1, "eve": "x"})
        tree.put("ranked", {name: {".value": name, ".priority": rank} for rank, name in enumerate("dcba")})

    def names(self, tree: Tree, path: str = "people", **query: str) -> set[str]:
        return set(tree.get(path, OWNER, **query))

    def test_by_child(self, tree: Tree) -> None:
        assert self.names(tree, orderBy='"age"') == set(PEOPLE)
        assert self.names(tree, orderBy='"age"', startAt="30") == {"ann", "cy", "eve"}
        assert self.names(tree, orderBy='"age"', startAt="26", endAt="30") == {"ann"}
        assert self.names(tree, orderBy='"age"', startAfter="30") == {"cy", "eve"}
        assert self.names(tree, orderBy='"age"', endBefore="30") == {"bob", "dan"}
        assert self.names(tree, orderBy='"age"', equalTo="30") == {"ann"}
        assert self.names(tree, orderBy='"age"', equalTo='"old"') == {"eve"}
        assert self.names(tree, orderBy='"age"', equalTo="null") == {"dan"}
        assert self.names(tree, orderBy='"age"', limitToFirst="2") == {"dan", "bob"}
        assert self.names(tree, orderBy='"age"', limitToLast="2") == {"cy", "eve"}
        assert self.names(tree, orderBy='"name/first"', startAt='"Cy"') == {"cy", "dan", "eve"}

    def test_children_are_whole(self, tree: Tree) -> None:
        assert tree.get("people", OWNER, orderBy='"age"', equalTo="25") == {"bob": PEOPLE["bob"]}

    def test_by_key(self, tree: Tree) -> None:
        assert self.names(tree, orderBy='"$key"', startAt='"bob"', endAt='"dan"') == {"bob", "cy", "dan"}
        assert self.names(tree, orderBy='"$key"', startAfter='"bob"', limitToFirst="1") == {"cy"}
        assert self.names(tree, orderBy='"$key"', limitToLast="1") == {"eve"}
        assert self.names(tree, orderBy='"$key"', equalTo='"cy"') == {"cy"}

    def test_by_value(self, tree: Tree) -> None:
        assert self.names(tree, "scores", orderBy='"$value"', startAt="7") == {"ann", "bob", "cy", "eve"}
        assert self.names(tree, "scores", orderBy='"$value"', startAt='9,"cy"') == {"cy", "eve"}
        assert self.names(tree, "scores", orderBy='"$value"', limitToFirst="1") == {"dan"}

    def test_by_priority(self, tree: Tree) -> None:
        assert self.names(tree, "ranked", orderBy='"$priority"', startAt="2") == {"b", "a"}
        assert self.names(tree, "ranked", orderBy='"$priority"', limitToFirst="1") == {"d"}
        found = tree.get("ranked", OWNER, orderBy='"$priority"', startAt="1", endAt="2", format="export")
        assert found == {"c": {".value": "c", ".priority": 1}, "b": {".value": "b", ".priority": 2}}

    def test_nothing_found(self, tree: Tree) -> None:
        assert tree.get("people", OWNER, orderBy='"age"', startAt='"zzz"') == {}
        assert tree.get("none", OWNER, orderBy='"$key"') == {}
        assert tree.get("scores/ann", OWNER, orderBy='"$key"') == {}

    def test_what_is_left_may_be_an_array(self, tree: Tree) -> None:
        tree.put("list", ["a", "b", "c", "d"])
        assert tree.get("list", OWNER, orderBy='"$key"', limitToFirst="2") == ["a", "b"]
        assert tree.get("list", OWNER, orderBy='"$key"', limitToLast="1") == {"3": "d"}

    def test_shallow_after_filtering(self, tree: Tree) -> None:
        assert tree.get("people", OWNER, orderBy='"age"', limitToLast="2", shallow="true") == {"cy": True, "eve": True}

    def test_an_index_is_needed(self, tree: Tree) -> None:
        def missing(name: str, path: str) -> tuple[int, str]:
            return 400, f'Index not defined, add ".indexOn": "{name}", for path "{path}", to the rules'

        assert failure(tree.send("GET", "people", headers=OWNER, orderBy='"height"')) == missing("height", "/people")
        assert failure(tree.send("GET", "", headers=OWNER, orderBy='"a/b"')) == missing("a/b", "/")
        assert failure(tree.send("GET", "people", headers=OWNER, orderBy='"$value"')) == missing(".value", "/people")

    def test_rights_come_before_indexes(self, tree: Tree) -> None:
        assert failure(tree.send("GET", "people", orderBy='"height"')) == DENIED

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ({"limitToFirst": "1"}, "orderBy must be defined when other query parameters are defined"),
            ({"startAt": "1"}, "orderBy must be defined when other query parameters are defined"),
            ({"orderBy": "age"}, "orderBy must be a valid JSON encoded path"),
            ({"orderBy": '"a.b"'}, "orderBy must be a valid JSON encoded path"),
            ({"orderBy": "5"}, "orderBy must be a valid JSON encoded path"),
            ({"orderBy": '"age"', "startAt": "x"}, "Constraint index field must be a JSON primitive"),
            ({"orderBy": '"age"', "endAt": "{}"}, "Constraint index field must be a JSON primitive"),
            ({"orderBy": '"age"', "equalTo": "[1]"}, "Constraint index field must be a JSON primitive"),
            ({"orderBy": '"$key"', "startAt": "1"}, "Provided key index type is invalid, must be string"),
            (
                {"orderBy": '"age"', "limitToFirst": "1", "limitToLast": "1"},
                "Only one of limitToFirst and limitToLast may be specified",
            ),
            ({"orderBy": '"age"', "limitToFirst": "x"}, "limitToFirst must be an integer"),
            ({"orderBy": '"age"', "limitToFirst": "0"}, "limitToFirst must be positive"),
            ({"orderBy": '"age"', "limitToLast": "1.5"}, "limitToLast must be an integer"),
            ({"orderBy": '"age"', "limitToLast": "-2"}, "limitToLast must be positive"),
            (
                {"orderBy": '"age"', "equalTo": "1", "startAt": "1"},
                "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore",
            ),
        ],
    )
    def test_queries_that_cannot_be(self, tree: Tree, query: dict[str, str], text: str) -> None:
        assert failure(tree.send("GET", "people", headers=OWNER, **query)) == (400, text)


# Errors


class TestErrors:
    @pytest.mark.parametrize("body", ["", " ", "{", "[1,", "tru", "1 2", "'a'", '{"a":1,}', "NaN", "01", '"\\ud800"', "{a:1}"])
    def test_what_is_no_json(self, tree: Tree, body: str) -> None:
        assert failure(tree.send("PUT", "a", body)) == BAD_JSON
        assert failure(tree.send("POST", "a", body)) == BAD_JSON

    def test_what_is_no_text(self, tree: Tree) -> None:
        assert failure(tree.send("PUT", "a", b'"\xff"')) == BAD_JSON

    @pytest.mark.parametrize("body", ["1", '"x"', "[1]", "true"])
    def test_a_patch_is_an_object(self, tree: Tree, body: str) -> None:
        assert failure(tree.send("PATCH", "a", body)) == BAD_OBJECT

    @pytest.mark.parametrize(
        ("body", "line", "column"),
        [
            ('{"a.b": 1}', 1, 2),
            ('{"a": {"": 1}}', 1, 8),
            ('{"a": 1,\n  "b$": 1}', 2, 3),
            ('{"x/y": 1}', 1, 2),
            ('[{"#": 1}]', 1, 3),
            ('{".foo": 1}', 1, 2),
        ],
    )
    def test_keys_that_cannot_be(self, tree: Tree, body: str, line: int, column: int) -> None:
        assert failure(tree.send("PUT", "a", body)) == bad_key(line, column)

    @pytest.mark.parametrize(
        "body",
        [
            '{".sv": "frob"}',
            '{".sv": "timestamp", "a": 1}',
            '{".sv": {"increment": "x"}}',
            '{".value": 1, "a": 2}',
            '{".value": {"a": 1}}',
            '{".priority": true, "a": 1}',
            '{".value": [1]}',
        ],
    )
    def test_special_members_that_cannot_be(self, tree: Tree, body: str) -> None:
        status, text = failure(tree.send("PUT", "a", body))
        assert status == 400 and text.startswith("Invalid data;")
        assert tree.get() is None

    def test_nested_beyond_measure(self, tree: Tree) -> None:
        for body in ("[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000):
            assert failure(tree.send("PUT", "a", body))[0] == 400

    def test_long_strings(self, tree: Tree) -> None:
        longest = "x" * (10 << 20)
        assert tree.send("PUT", "a", json.dumps(longest), print="silent").status == 204
        assert tree.get("a") == longest
        assert tree.send("PUT", "a", json.dumps(longest + "x")).status == 400

    def test_parameters_are_looked_at_before_tokens(self, tree: Tree) -> None:
        assert failure(tree.send("GET", "a", orderBy="x", auth="nonsense"))[1].startswith("orderBy")
        assert failure(tree.send("GET", "a.b", auth="nonsense")) == BAD_PATH


# Tags


class TestTags:
    WANTED = {"X-Firebase-ETag": "true"}

    def tag(self, tree: Tree, path: str, **parameters: str) -> str:
        return tree.send("GET", path, headers=self.WANTED, **parameters).headers["etag"]

    def test_only_for_those_who_ask(self, tree: Tree) -> None:
        assert "etag" not in tree.send("GET", "a").headers
        assert "etag" not in tree.send("PUT", "a", "1").headers

    def test_tags_follow_the_content(self, tree: Tree) -> None:
        assert self.tag(tree, "a") == "null_etag"
        tags = []
        values = [1, 2, "1", {"b": 1}, {"b": {".value": 1, ".priority": 1}}, True]
        for value in values:
            reply = tree.send("PUT", "a", json.dumps(value), self.WANTED)
            tags.append(reply.headers["etag"])
            assert self.tag(tree, "a") == tags[-1] == self.tag(tree, "a", shallow="true")
        assert len(set(tags)) == len(values)
        tree.put("copy", values[3])
        assert self.tag(tree, "copy") == tags[3]
        assert not any(tag.startswith('"') for tag in tags)

    def test_on_every_method(self, tree: Tree) -> None:
        reply = tree.send("POST", "list", '"x"', self.WANTED)
        assert reply.headers["etag"] == self.tag(tree, f"list/{reply.json['name']}")
        assert tree.send("DELETE", "list", headers=self.WANTED).headers["etag"] == "null_etag"
        assert "etag" not in tree.send("PATCH", "list", {"a": 1}, self.WANTED).headers

    def test_if_match(self, tree: Tree) -> None:
        tree.put("a", {"n": 1})
        tag = self.tag(tree, "a")
        for method in ("PUT", "PATCH", "POST", "DELETE"):
            once = tree.send(method, "a", {"n": 2}, {"x-hearth-once": "e"})
            assert once.status == 400 and "x-hearth-once" in str(once.json)
        stale = tree.send("PUT", "a", {"n": 2}, {"if-match": "other"})
        assert (stale.status, stale.json, stale.headers["etag"]) == (412, {"n": 1}, tag)
        done = tree.send("PUT", "a", {"n": 2}, {"if-match": tag})
        assert (done.status, done.json) == (200, {"n": 2}) and "etag" not in done.headers
        assert tree.send("PUT", "a", {"n": 3}, {"if-match": f'"{self.tag(tree, "a")}"'}).status == 200
        assert tree.send("DELETE", "a", headers={"if-match": tag}).status == 412
        assert tree.send("DELETE", "a", headers={"if-match": self.tag(tree, "a")}).status == 200

    def test_only_if_nothing_is_there(self, tree: Tree) -> None:
        assert tree.send("PUT", "a", "1", {"if-match": "null_etag"}).status == 200
        again = tree.send("PUT", "a", "2", {"if-match": "null_etag"})
        assert (again.status, again.json) == (412, 1)

    def test_where_conditions_are_not_supported(self, tree: Tree) -> None:
        for verb in ("PATCH", "POST"):
            assert failure(tree.send(verb, "a", "{}", {"if-match": "x"}))[0] == 400
        assert failure(tree.send("PUT", "a", "1", {"if-match": "x,y"}))[0] == 400
        assert failure(tree.send("PUT", "a", "1", {"if-match": "x"}, orderBy='"a"'))[0] == 400
        assert failure(tree.send("PUT", "a/.priority", "1", {"if-match": "x"}))[0] == 400

    def test_if_none_match(self, tree: Tree) -> None:
        tree.put("a", [1, 2])
        changed = tree.send("GET", "a", headers={"if-none-match": "other"})
        assert (changed.status, changed.json) == (200, [1, 2])
        same = tree.send("GET", "a", headers={"if-none-match": changed.headers["etag"]})
        assert (same.status, same.content) == (304, b"")

    def test_one_of_many_wins(self, tree: Tree, address: str, project: str) -> None:
        wins: list[int] = []

        def work(number: int) -> None:
            own = Tree(address, project)
            if own.send("PUT", "lock", str(number), {"if-match": "null_etag"}).status == 200:
                wins.append(number)
            own.close()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(wins) == 1 and tree.get("lock") == wins[0]

    def test_who_may_not_read_learns_nothing_by_guessing(self, tree: Tree) -> None:
        tree.put("secret", 42)
        tag = tree.send("GET", "secret", headers={**OWNER, **self.WANTED}).headers["etag"]
        tree.rules({"secret": {".write": "newData.val() == 'never'"}})
        for guess in (tag, "other", "null_etag"):
            assert failure(tree.send("PUT", "secret", "1", {"if-match": guess})) == DENIED
        # A client that may read is informed first that the value differs: the rule may hold for the next attempt.
        tree.rules({".read": True, "secret": {".write": "newData.val() == data.val() + 1"}})
        assert tree.send("PUT", "secret", "1", {"if-match": "other"}).status == 412
        assert failure(tree.send("PUT", "secret", "1", {"if-match": tag})) == DENIED
        assert tree.send("PUT", "secret", "43", {"if-match": tag}).status == 200


# Credentials


class TestIdentity:
    @pytest.fixture(autouse=True)
    def rules(self, tree: Tree) -> None:
        tree.rules({"users": {"$uid": {".read": "auth.uid == $uid", ".write": "auth.uid == $uid"}}})

    def test_nobody(self, tree: Tree) -> None:
        assert failure(tree.send("GET", "users/ann")) == DENIED
        assert failure(tree.send("PUT", "users/ann", "1")) == DENIED
        assert failure(tree.send("GET", "")) == DENIED

    def test_a_user(self, tree: Tree) -> None:
        ann = unsigned("ann")
        assert tree.send("PUT", "users/ann", "1", auth=ann).status == 200
        assert tree.get("users/ann", auth=ann) == 1
        assert tree.get("users/ann", {"Authorization": f"Bearer {ann}"}) == 1
        assert failure(tree.send("GET", "users/bob", auth=ann)) == DENIED
        assert failure(tree.send("DELETE", "users/ann", auth=unsigned("bob"))) == DENIED

    @pytest.mark.parametrize(
        ("headers", "parameters"),
        [
            (OWNER, {}),
            ({"Authorization": "Bearer anything"}, {}),
            ({"Authorization": "bearer ya29.token"}, {}),
            ({}, {"auth": "owner"}),
            ({}, {"access_token": "owner"}),
            ({}, {"access_token": "anything"}),
            (OWNER, {"auth": "nonsense"}),
        ],
    )
    def test_administrators(self, tree: Tree, headers: dict[str, str], parameters: dict[str, str]) -> None:
        assert tree.send("PUT", "users/x", "1", headers, **parameters).status == 200

    def test_overrides(self, tree: Tree) -> None:
        override = {"auth_variable_override": json.dumps({"uid": "ann"})}
        assert tree.send("PUT", "users/ann", "1", OWNER, **override).status == 200
        assert failure(tree.send("PUT", "users/bob", "1", OWNER, **override)) == DENIED
        nobody = {"auth_variable_override": "null"}
        assert failure(tree.send("GET", "users/ann", headers=OWNER, **nobody)) == DENIED
        # Only administrators may act as another user.
        assert failure(tree.send("GET", "users/ann", **override)) == DENIED
        assert failure(tree.send("GET", "users/ann", auth=unsigned("bob"), **override)) == DENIED
        for bad in ("{", "5", '"ann"', "[]", ""):
            assert failure(tree.send("GET", "users/ann", headers=OWNER, auth_variable_override=bad))[0] == 400

    @pytest.mark.parametrize("token", ["x", "a.b", "a.b.c", "...", "", "eyJ9.eyJ9."])
    def test_what_is_no_token(self, tree: Tree, token: str) -> None:
        assert failure(tree.send("GET", "users/ann", auth=token)) == (401, "Could not parse auth token.")

    def test_what_is_no_bearer(self, tree: Tree) -> None:
        reply = tree.send("GET", "users/ann", headers={"Authorization": "Basic YTpi"})
        assert failure(reply) == (401, "Could not parse auth token.")

    def test_the_auth_variable(self, tree: Tree) -> None:
        tree.rules({
            "provider": {".read": "auth.provider == 'password'"},
            "claim": {".read": "auth.token.admin == true && auth.token.sub == auth.uid"},
        })
        token = unsigned("ann", admin=True, firebase={"sign_in_provider": "password"})
        assert tree.get("provider", auth=token) is None and tree.get("claim", auth=token) is None
        assert failure(tree.send("GET", "provider", auth=unsigned("ann"))) == DENIED
        assert failure(tree.send("GET", "claim", auth=unsigned("ann"))) == DENIED


# Settings


class TestSettings:
    OPEN = {"rules": {".read": True, ".write": True}}

    def test_rules_come_back_as_they_went(self, tree: Tree) -> None:
        assert tree.send("GET", ".settings/rules", headers=OWNER).json == self.OPEN
        text = '{\n  // who\n  "rules": {".read": "auth != null", /* all */ ".write": false,}\n}\n'
        tree.rules(text)
        assert tree.send("GET", ".settings/rules", headers=OWNER).content.decode() == text
        strict = tree.send("GET", ".settings/rules", headers=OWNER, format="strict").json
        assert strict == {"rules": {".read": "auth != null", ".write": False}}

    def test_rules_hold_at_once(self, tree: Tree) -> None:
        tree.put("a", 1)
        assert tree.get("a") == 1
        tree.rules({".read": False})
        assert failure(tree.send("GET", "a")) == DENIED
        tree.rules({".read": True})
        assert tree.get("a") == 1
        assert failure(tree.send("PUT", "a", "2")) == DENIED

    def test_broken_rules_change_nothing(self, tree: Tree) -> None:
        tree.rules({".read": False})
        bad = tree.send("PUT", ".settings/rules", '{"rules": {".read": "foo"}}', OWNER)
        assert failure(bad)[0] == 400 and "Unknown variable 'foo'." in bad.json["error"]
        assert bad.json["error"].endswith("\n") and bad.json["error"].startswith("1:")
        assert failure(tree.send("GET", "a")) == DENIED

    def test_trying_rules(self, tree: Tree) -> None:
        assert tree.send("PUT", ".settings/rules", '{"rules": {}}', OWNER, dryRun="true").status == 200
        assert tree.get("a") is None

    def test_for_administrators_only(self, tree: Tree) -> None:
        for verb, body in (("GET", None), ("PUT", '{"rules": {}}')):
            assert failure(tree.send(verb, ".settings/rules", body)) == DENIED
            assert failure(tree.send(verb, ".settings/rules", body, auth=unsigned("ann"))) == DENIED

    def test_what_emulators_are_asked(self, tree: Tree) -> None:
        tree.put("a", 1)
        databases = tree.send("GET", ".inspect/databases", headers=OWNER).json
        assert {"name": tree.namespace} in databases
        # Without the address of a functions emulator it has no effect: see test_trigger_registration.
        trigger = {
            "name": "projects/p/locations/_/functions/k",
            "path": "/a/{b}",
            "event": "providers/google.firebase.database/eventTypes/ref.write",
            "topic": "projects/p/topics/k",
        }
        for verb, body in (("PUT", [trigger]), ("POST", trigger), ("PUT", [])):
            assert tree.send(verb, ".settings/functionTriggers", body, OWNER).json == {"status": "ok"}

    @pytest.mark.parametrize("name", [".settings/rulesets", ".settings/profile", ".settings", ".inspect/x"])
    def test_what_is_not_there(self, tree: Tree, name: str) -> None:
        assert failure(tree.send("GET", name, headers=OWNER))[0] == 404

    def test_large_rules(self, tree: Tree) -> None:
        assert failure(tree.send("PUT", ".settings/rules", " " * (300 << 10) + '{"rules": {}}', OWNER))[0] == 400
        assert failure(tree.send("PUT", ".settings/rules", " " * (2 << 20), OWNER))[0] == 413


def test_requests_are_counted(tmp_path: Path) -> None:
    with program(tmp_path, "--memory") as server:
        tree = Tree(server.address, "shop")
        tree.put("a", 1)
        tree.get("a")
        tree.send("PUT", "a", "{")
        tree.send("GET", ".settings/rules", headers=OWNER)
        text = tree.raw("GET", "/metrics").content.decode()
        assert 'hearth_tree_commits_total{namespace="shop"} 1\n' in text
        for method, code in (
            ("RealtimeRead", "OK"),
            ("RealtimeWrite", "OK"),
            ("RealtimeWrite", "INVALID_ARGUMENT"),
            ("RealtimeAdmin", "OK"),
        ):
            assert f'hearth_requests_total{{method="{method}",transport="rest",code="{code}"}} 1\n' in text
        server.terminate()


# Browsers


class TestBrowsers:
    ORIGIN = {"Origin": "https://app.localhost"}

    def test_a_loopback_page_may_ask(self, tree: Tree) -> None:
        for reply in (
            tree.send("GET", "a", headers=self.ORIGIN),
            tree.send("PUT", "a", "{", self.ORIGIN),
            tree.send("GET", "a", headers=self.ORIGIN, auth="x"),
        ):
            assert reply.headers["access-control-allow-origin"] in ("*", "https://app.localhost")
        assert tree.send("GET", "a").headers["access-control-allow-origin"] == "*"
        assert "etag" in tree.send("GET", "a", headers=self.ORIGIN).headers["access-control-expose-headers"].lower()

    def test_preflight(self, tree: Tree) -> None:
        asked = {
            **self.ORIGIN,
            "Access-Control-Request-Method": "PATCH",
            "Access-Control-Request-Headers": "x-firebase-etag",
        }
        reply = tree.send("OPTIONS", "a", headers=asked)
        assert reply.status in (200, 204)
        for verb in ("GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"):
            assert verb in reply.headers["access-control-allow-methods"]
        assert reply.headers["access-control-allow-headers"] == "x-firebase-etag"
        assert int(reply.headers["access-control-max-age"]) > 0


# Anything


PIECES = [
    *("{", "}", "[", "]", ",", ":", '"', "null", "true", "-1", "1e999", "1.5", "\\", "\\u0000", '"a"', '"a":', ".sv", ".value"),
    *('".priority":', '{".sv":"timestamp"}', '{".sv":{"increment":1}}', "a/b", "..", "%00", "\x00", "ä", "😀", "//", "/* */"),
]
NAMES = [
    *("orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast", "shallow", "print"),
    *("format", "callback", "download", "timeout", "writeSizeLimit", "auth", "access_token", "auth_variable_override", "x"),
]
TEXTS = [
    *('"$key"', '"$value"', '"$priority"', '"a"', "1", "-1", "0", "2147483648", "true", "silent", "pretty", "export", "tiny"),
    *("null", "{}", "[", "", "owner", "3s", "f", "\n", "x,y", '1,"k"', '"a","b"', "ä", "9" * 40),
]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_sent_is_answered_in_order(tree: Tree, seed: int) -> None:
    chance = random.Random(seed)
    tree.rules({".read": True, ".write": True, "a": {".indexOn": [".value", "a"]}})
    for _ in range(500):
        verb = chance.choice(["GET", "GET", "PUT", "PATCH", "POST", "DELETE", "HEAD"])
        body = "".join(chance.choices(PIECES, k=chance.randrange(8))) if verb in ("PUT", "PATCH", "POST") else None
        path = "/".join(chance.choices(["a", "b", "0", "1", ".priority", "%ff", "$", "ä"], k=chance.randrange(4)))
        parameters = {name: chance.choice(TEXTS) for name in chance.sample(NAMES, chance.randrange(4))}
        headers = {
            name: chance.choice(["null_etag", "x", '"x"', "true", "", "a,b"])
            for name in chance.sample(["if-match", "if-none-match", "x-firebase-etag", "x-http-method-override"], 1)
        }
        reply = tree.send(verb, path, body, headers, **parameters)
        assert reply.status in (200, 204, 304, 400, 401, 405, 412), (verb, path, body, parameters, reply)
        if reply.content and reply.status == 200 and "callback" not in parameters:
            json.loads(reply.content)
    # Accepted data is a tree that can be read and written again.
    value = tree.get(format="export")
    assert tree.put("copy", value, format="export") is not None or value is None
    assert tree.get("copy", format="export") == value


# Large things


class TestSizes:
    def test_large_answers_come_whole(self, tree: Tree) -> None:
        value = {f"k{number:05}": {"text": "ä" * 500, "n": number} for number in range(6000)}
        assert tree.send("PUT", "big", json.dumps(value), OWNER, print="silent").status == 204
        assert tree.get("big") == value
        assert json.loads(tree.send("GET", "big", print="pretty").content) == value
        called = tree.send("GET", "big", callback="f", print="pretty").content
        assert json.loads(called.removeprefix(b"/**/f(").removesuffix(b");")) == value
        assert len(tree.get("big", orderBy='"$key"', limitToLast="3000")) == 3000
        assert len(tree.get("big", shallow="true")) == 6000

    def test_slow_readers_get_the_state_that_they_asked_for(self, tree: Tree, address: str, project: str) -> None:
        value = {f"k{number:05}": "x" * 1000 for number in range(8000)}
        tree.put("big", value, print="pretty")
        slow = Tree(address, project)
        slow.connection.request("GET", f"/big.json?ns={project}")
        response = slow.connection.getresponse()
        first = response.read(10)
        tree.send("DELETE", "big")
        assert tree.get("big") is None
        assert json.loads(first + response.read()) == value
        slow.close()

    def test_whoever_is_no_administrator_writes_less(self, tree: Tree) -> None:
        body = json.dumps("x" * (9 << 20)).encode()
        assert tree.send("PUT", "big", b'{"a":' + body + b"}", print="silent").status == 204
        both = b'{"a":' + body + b',"b":' + body + b"}"
        assert tree.send("PUT", "big", both, OWNER, print="silent").status == 204
        assert tree.send("PUT", "big", both).status == 413

    def test_a_body_larger_than_any(self, tree: Tree) -> None:
        connection = tree.connection
        connection.putrequest("PUT", f"/a.json?ns={tree.namespace}")
        connection.putheader("Content-Length", str((256 << 20) + 1))
        connection.endheaders()
        piece = b" " * (1 << 20)
        try:
            for _ in range(257):
                connection.send(piece)
        except OSError:
            pass
        reply = connection.getresponse()
        assert reply.status == 413
        reply.read()


# A server for production


def until(condition: Any, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


def test_data_and_rules_outlive_a_restart(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        tree = Tree(server.address, "shop")
        tree.put("a", {"b": {".value": 1, ".priority": 2}})
        tree.rules({".read": True, "a": {".indexOn": "x"}})
        assert server.terminate()[0] == 0
    with program(tmp_path) as server:
        tree = Tree(server.address, "shop")
        assert tree.get(format="export") == {"a": {"b": {".value": 1, ".priority": 2}}}
        assert tree.get("a", orderBy='"x"') == {"b": 1}
        assert failure(tree.send("PUT", "a", "1")) == DENIED
        names = tree.send("GET", ".inspect/databases", headers=OWNER).json
        assert {"name": "shop"} in names


def test_trees_are_checked_with_the_rest(tmp_path: Path) -> None:
    with program(tmp_path) as server:
        tree = Tree(server.address, "shop")
        tree.rules({"a": {".indexOn": [".value", "x"]}})
        tree.put("a", {f"k{number}": {"x": number, ".priority": number} for number in range(100)})
        tree.put("a/k5/x", "y" * 2000)
        server.process.kill()
        server.end()
    text = assert_sound(tmp_path / "hearth-data")
    assert "1 database, all sound" in text and "Realtime Database shop\n    sound" in text


def test_rules_of_the_project_s_file(tmp_path: Path) -> None:
    write_rules(tmp_path, {"open": {".read": True}})
    (tmp_path / "firebase.json").write_text('{"database": {"rules": "database.rules.json"}}')
    with program(tmp_path, "--memory") as server:
        tree = Tree(server.address, "any-name")
        assert tree.get("open") is None
        assert failure(tree.send("GET", "shut")) == DENIED
        write_rules(tmp_path, {"shut": {".read": True}})
        until(lambda: tree.send("GET", "shut").status == 200)
        assert failure(tree.send("GET", "open")) == DENIED
        # A broken file changes nothing.
        (tmp_path / "database.rules.json").write_text('{"rules": {".read": "frob"}}')
        time.sleep(2.5)
        assert tree.get("shut") is None
        server.terminate()


def test_the_file_wins_when_it_is_younger(tmp_path: Path) -> None:
    write_rules(tmp_path, {"file": {".read": True}})
    with program(tmp_path) as server:
        Tree(server.address, "shop").rules({"sent": {".read": True}})
        server.terminate()
    with program(tmp_path) as server:
        tree = Tree(server.address, "shop")
        assert tree.get("sent") is None
        assert failure(tree.send("GET", "file")) == DENIED
        server.terminate()
    write_rules(tmp_path, {"file2": {".read": True}})
    with program(tmp_path) as server:
        tree = Tree(server.address, "shop")
        assert tree.get("file2") is None
        assert failure(tree.send("GET", "sent")) == DENIED
        server.terminate()


def test_rules_by_namespace(tmp_path: Path) -> None:
    (tmp_path / "main.json").write_text('{"rules": {"main": {".read": true}}}')
    (tmp_path / "users.json").write_text('{"rules": {"users": {".read": true}}}')
    (tmp_path / "firebase.json").write_text(
        json.dumps({
            "database": [
                {"target": "main", "rules": "main.json"},
                {"instance": "users-db", "rules": "users.json"},
            ]
        })
    )
    (tmp_path / ".firebaserc").write_text(
        json.dumps({
            "projects": {"default": "shop"},
            "targets": {"shop": {"database": {"main": ["shop-default-rtdb", "shop-2"]}}},
        })
    )
    with program(tmp_path, "--memory") as server:
        for name in ("shop-default-rtdb", "shop-2"):
            assert Tree(server.address, name).get("main") is None
            assert failure(Tree(server.address, name).send("GET", "users")) == DENIED
        assert Tree(server.address, "users-db").get("users") is None
        assert Tree(server.address, "other").get("anything") is None


def test_broken_rules_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{\n"rules": {".read": "frob"}}')
    started = Program.spawn(tmp_path, "--database-rules", "r.json")
    _, log = started.communicate(timeout=PATIENCE)
    assert started.returncode == 78
    assert "r.json:2:" in log and "Unknown variable 'frob'." in log


def test_a_second_port(tmp_path: Path) -> None:
    with program(tmp_path, "--memory", "--database-port", "0") as server:
        line = next(line for line in iter(server.process.stdout.readline, "") if "FIREBASE_DATABASE" in line)
        second = line.strip().rsplit("=", 1)[1]
        assert int(second.rsplit(":", 1)[1]) != server.port
        Tree(second, "x").put("a", 1)
        assert Tree(server.address, "x").get("a") == 1
        server.terminate()


class TestProduction:
    @pytest.fixture
    def server(self, tmp_path: Path) -> Any:
        with production(tmp_path) as started:
            yield started

    ADMIN = {"Authorization": "Bearer the administrator's own secret"}
    READER = {"Authorization": "Bearer a secret of one who only reads"}

    def test_signed_tokens(self, server: Any) -> None:
        tree = Tree(server.address, "shop-default-rtdb")
        assert tree.send("PUT", "users/ann", "1", auth=signed("ann")).status == 200
        assert tree.get("users/ann", {"Authorization": f"Bearer {signed('ann')}"}) == 1
        assert failure(tree.send("GET", "users/ann", auth=signed("bob"))) == DENIED
        expired = (401, "Auth token is expired")
        assert failure(tree.send("GET", "users/ann", auth=signed("ann", seconds=-600))) == expired
        unreadable = (401, "Could not parse auth token.")
        for bad in (unsigned("ann"), signed("ann") + "x", "owner", "nonsense"):
            assert failure(tree.send("GET", "users/ann", auth=bad)) == unreadable
        for bad in ("owner", "anything"):
            assert failure(tree.send("GET", "users/ann", headers={"Authorization": f"Bearer {bad}"})) == unreadable
            assert failure(tree.send("GET", "users/ann", access_token=bad)) == unreadable
        assert failure(tree.send("GET", "users/ann", access_token=signed("ann"))) == unreadable

    def test_administrators(self, server: Any) -> None:
        tree = Tree(server.address, "shop-default-rtdb")
        assert tree.send("PUT", "x", "1", self.ADMIN).status == 200
        assert tree.get("x", auth="the administrator's own secret") == 1
        assert tree.get("x", access_token="the administrator's own secret") == 1
        assert tree.get("x", self.READER) == 1
        assert failure(tree.send("PUT", "x", "2", self.READER)) == DENIED
        assert tree.send("GET", ".settings/rules", headers=self.READER).status == 200
        assert failure(tree.send("PUT", ".settings/rules", '{"rules": {}}', self.READER)) == DENIED
        override = {"auth_variable_override": '{"uid": "ann"}'}
        assert failure(tree.send("GET", "x", headers=self.ADMIN, **override)) == DENIED

    def test_namespaces_are_made_by_administrators(self, server: Any) -> None:
        tree = Tree(server.address, "another")
        assert failure(tree.send("GET", "x", headers=self.ADMIN))[0] == 404
        assert failure(tree.send("GET", "users/ann", auth=signed("ann")))[0] == 404
        assert tree.send("PUT", "x", "1", self.ADMIN).status == 200
        assert failure(tree.send("GET", "x")) == DENIED
        assert tree.send("PUT", "users/ann", "1", auth=signed("ann")).status == 200

    def test_administrators_list_namespaces(self, server: Any) -> None:
        tree = Tree(server.address, "shop-default-rtdb")
        assert tree.send("PUT", "x", "1", self.ADMIN).status == 200
        names = tree.send("GET", ".inspect/databases", headers=self.READER).json
        assert {"name": "shop-default-rtdb"} in names
        assert failure(tree.send("GET", ".inspect/databases", auth=signed("ann"))) == DENIED
        assert failure(tree.send("GET", ".inspect/databases")) == DENIED

    def test_what_is_for_local_development_only(self, server: Any) -> None:
        tree = Tree(server.address, "shop-default-rtdb")
        assert failure(tree.send("PUT", ".settings/functionTriggers", "{}", self.ADMIN))[0] == 404


def test_without_rules_it_is_locked(tmp_path: Path) -> None:
    with program(tmp_path, "--memory", "--no-emulator") as server:
        tree = Tree(server.address, "demo-hearth-default-rtdb")
        assert failure(tree.send("GET", "a")) == DENIED
        assert failure(tree.send("PUT", "a", "1")) == DENIED
        server.terminate()
