"""Triggers: which events there are, what functions of Google's SDKs make of them, and their delivery.

Nothing here waits for a fixed time: a test that expects no event waits until the trigger has none that is not settled,
which the server counts exactly. Times are compared with lower bounds only.
"""

from __future__ import annotations

import base64
import email.utils
import json
import os
import random
import select
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from endtoend.test_program import refused
from support.calls import Calls
from support.events import (
    LEGACY,
    V1,
    Endpoint,
    Event,
    Functions,
    Reply,
    Request,
    Served,
    definition,
    functions,
    name_of,
    until,
    update,
)
from support.patience import PATIENCE
from support.program import BINARY
from support.servers import free_port
from support.streams import Stream, WriteRequest
from support.tokens import unsigned
from support.wire import METHODS, message_class, parse

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

KINDS = ["created", "updated", "deleted", "written"]
WITH_AUTHOR = ".withAuthContext"


class World:
    """A project of one test on a server that tests share, and an endpoint of its own."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.project = f"demo-{uuid.uuid4().hex[:12]}"
        self.endpoint = Endpoint()
        self.names: list[str] = []

    def close(self) -> None:
        for name in self.names:
            self.served.ask("DELETE", f"/hearth/v1/triggers/{name}")
        self.endpoint.close()

    def trigger(
        self, document: str = "{all=**}", kind: str = "written", url: str | None = None, name: str = "t", **more: Any
    ) -> str:
        """Makes a trigger for this project; returns its name."""
        made = f"{name}-{self.project}"
        if made not in self.names:
            self.names.append(made)
        body = definition(url or self.endpoint.url, document, kind, **{"project": self.project, **more})
        self.served.good("PUT", f"/hearth/v1/triggers/{made}", body)
        return made

    def state(self, name: str) -> dict[str, Any]:
        return self.served.trigger(name)

    def settled(self) -> None:
        self.served.settled(*self.names)

    def put(self, path: str, **values: Any) -> None:
        self.served.put(path, project=self.project, **values)

    def update(self, path: str, **values: Any) -> dict[str, Any]:
        return update(path, project=self.project, **values)

    def name(self, path: str) -> str:
        return name_of(path, self.project)

    def commit(self, *writes: Any) -> Any:
        return self.served.commit(*writes, project=self.project)

    def delete(self, path: str) -> None:
        self.commit({"delete": self.name(path)})

    def events(self) -> list[tuple[str, str]]:
        """Kind and document of what came, when all of it has come."""
        self.settled()
        return [(event.kind, event.document) for event in self.endpoint.events()]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("triggers")) as made:
        yield made


@pytest.fixture
def world(served: Served) -> Iterator[World]:
    made = World(served)
    yield made
    made.close()


# MARK: Functions


FIREBASE = """
import json, os
from firebase_functions import firestore_fn

def report(function, **what):
    with open(os.environ["REPORT"], "a") as file:
        file.write(json.dumps({"function": function, **what}, default=repr) + "\\n")

def state(snapshot):
    return None if snapshot is None else {"name": snapshot.reference.path, "data": snapshot.to_dict()}

def common(event):
    return {"id": event.id, "type": event.type, "params": event.params, "document": event.document,
            "project": event.project, "database": event.database, "namespace": event.namespace,
            "location": event.location, "source": event.source, "subject": event.subject,
            "time": event.time.timestamp(), "specversion": event.specversion}

def change(function, event, **more):
    report(function, before=state(event.data.before), after=state(event.data.after), **common(event), **more)

def single(function, event, **more):
    report(function, state=state(event.data), **common(event), **more)

def author(event):
    return {"auth": [event.auth_type, event.auth_id]}

PATH = "cities/{city}/streets/{street}"

@firestore_fn.on_document_written(document=PATH)
def written(event):
    change("written", event)

@firestore_fn.on_document_updated(document=PATH)
def updated(event):
    change("updated", event)

@firestore_fn.on_document_created(document=PATH)
def created(event):
    single("created", event)

@firestore_fn.on_document_deleted(document=PATH)
def deleted(event):
    single("deleted", event)

@firestore_fn.on_document_written_with_auth_context(document=PATH)
def written_auth(event):
    change("written_auth", event, **author(event))

@firestore_fn.on_document_updated_with_auth_context(document=PATH)
def updated_auth(event):
    change("updated_auth", event, **author(event))

@firestore_fn.on_document_created_with_auth_context(document=PATH)
def created_auth(event):
    single("created_auth", event, **author(event))

@firestore_fn.on_document_deleted_with_auth_context(document=PATH)
def deleted_auth(event):
    single("deleted_auth", event, **author(event))
"""

FRAMEWORK = """
import base64, json, os
import functions_framework

def report(function, **what):
    with open(os.environ["REPORT"], "a") as file:
        file.write(json.dumps({"function": function, **what}) + "\\n")

@functions_framework.cloud_event
def recorded(event):
    data = event.data
    is_bytes = isinstance(data, bytes)
    report("recorded", attributes=dict(event._get_attributes()), is_bytes=is_bytes,
           data=base64.b64encode(data).decode() if is_bytes else data)

def background(data, context):
    report("background", data=data, id=context.event_id, type=context.event_type, time=context.timestamp,
           resource=context.resource)
"""

#: How a function of `firebase-functions` is called, and the events that it is for.
TARGETS = {**{kind: kind for kind in KINDS}, **{f"{kind}_auth": kind + WITH_AUTHOR for kind in KINDS}}
PATH = "cities/{city}/streets/{street}"


@pytest.fixture(scope="module")
def firebase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    with functions(tmp_path_factory.mktemp("firebase"), FIREBASE, TARGETS) as made:
        yield made


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    with functions(tmp_path_factory.mktemp("framework"), FRAMEWORK, ["recorded", "background:event"]) as made:
        yield made


class TestFirebaseFunctions:
    """Functions of `firebase-functions` under `functions-framework`."""

    @pytest.mark.parametrize("mode", ["binary", "structured"])
    def test_each_kind_gets_its_events(self, world: World, firebase: Functions, mode: str) -> None:
        firebase.clear()
        names = {
            target: world.trigger(PATH, kind, firebase.url(target), name=target, mode=mode)
            for target, kind in TARGETS.items()
        }
        path = "cities/rome/streets/via"
        for number in (1, 2):
            world.put(path, n=number)
        world.delete(path)
        # Not what they are for.
        world.put("cities/rome", n=1)
        world.settled()
        assert [world.state(name)["deadLetters"] for name in names.values()] == [0] * len(names)

        def states(target: str) -> list[Any]:
            found = []
            for report in firebase.reports(target):
                if "state" in report:
                    found.append(report["state"]["data"])
                else:
                    found.append([s and s["data"] for s in (report["before"], report["after"])])
            return found

        for more in ("", "_auth"):
            assert states("created" + more) == [{"n": 1}]
            assert states("deleted" + more) == [{"n": 2}]
            assert states("updated" + more) == [[{"n": 1}, {"n": 2}]]
            assert states("written" + more) == [[None, {"n": 1}], [{"n": 1}, {"n": 2}], [{"n": 2}, None]]
        for report in firebase.reports():
            assert report["params"] == {"city": "rome", "street": "via"}
            assert report["document"] == path
            assert (report["project"], report["database"], report["namespace"]) == (
                world.project,
                "(default)",
                "(default)",
            )
            assert report["source"] == f"//firestore.googleapis.com/projects/{world.project}/databases/(default)"
            assert report["subject"] == f"documents/{path}"
            assert (report["location"], report["specversion"]) == ("us-central1", "1.0")
            assert report["type"] == V1 + TARGETS[report["function"]]
            assert abs(report["time"] - time.time()) < 600
            assert report.get("auth", ["service_account", "owner"]) == ["service_account", "owner"]
        # One event a trigger and change, each with its own id.
        ids = [report["id"] for report in firebase.reports()]
        assert len(ids) == len(set(ids)) == 12

    def test_who_made_the_change(self, world: World, firebase: Functions) -> None:
        firebase.clear()
        world.trigger(PATH, "written" + WITH_AUTHOR, firebase.url("written_auth"))
        path = f"/v1/{world.name('cities/rome/streets/via')}"
        for number, token in enumerate([unsigned("eva"), None, "owner", unsigned("zoë")]):
            body = {"fields": {"n": {"integerValue": str(number)}}}
            assert world.served.ask("PATCH", path, body, token=token)[0] == 200
        found = [report["auth"] for report in firebase.wait_for(4, "written_auth")]
        assert found[:3] == [["unknown", "eva"], ["unauthenticated", ""], ["service_account", "owner"]]
        # SDKs decode headers as Latin-1.
        assert found[3][0] == "unknown" and found[3][1].encode("latin-1").decode() == "zoë"

    def test_typed_data(self, world: World, firebase: Functions) -> None:
        firebase.clear()
        world.trigger(PATH, "written", firebase.url("written"))
        values = {
            "null": {"nullValue": None},
            "yes": {"booleanValue": True},
            "int": {"integerValue": str(2**63 - 1)},
            "double": {"doubleValue": 3.0},
            "text": {"stringValue": "é\u0000\U0001f600"},
            "bytes": {"bytesValue": base64.b64encode(b"\x00\xff").decode()},
            "time": {"timestampValue": "2026-11-22T19:17:22.682316Z"},
            "point": {"geoPointValue": {"latitude": 1.5, "longitude": -2.5}},
            # The SDK takes references into the project of its environment only.
            "reference": {"referenceValue": name_of("cities/rome")},
            "list": {"arrayValue": {"values": [{"integerValue": "1"}, {"stringValue": "x"}]}},
            "map": {"mapValue": {"fields": {"a.b": {"doubleValue": -0.0}, "": {"mapValue": {}}}}},
        }
        name = world.name("cities/rome/streets/via")
        # An empty field name is one that Firestore doesn't have.
        del values["map"]["mapValue"]["fields"][""]
        world.commit({"update": {"name": name, "fields": values}})
        (report,) = firebase.wait_for(1, "written")
        assert report["before"] is None
        data = report["after"]["data"]
        assert data["null"] is None and data["yes"] is True and data["int"] == 2**63 - 1
        assert isinstance(data["double"], float) and data["double"] == 3.0
        assert data["text"] == "é\u0000\U0001f600" and data["bytes"] == repr(b"\x00\xff")
        assert "2026, 11, 22, 19, 17, 22, 682316" in data["time"]
        assert "GeoPoint" in data["point"] and "DocumentReference" in data["reference"]
        assert data["list"] == [1, "x"] and str(data["map"]["a.b"]) == "-0.0"

    def test_names_that_are_not_ascii(self, world: World, firebase: Functions) -> None:
        """In structured mode they are right; in binary mode the SDK reads the UTF-8 of the header as Latin-1."""
        path = "cities/Zürich/streets/日本 ß"
        for mode in ("structured", "binary"):
            firebase.clear()
            name = world.trigger(PATH, "written", firebase.url("written"), name=mode, mode=mode)
            world.put(path, **{"größe": mode})
            (report,) = firebase.wait_for(1, "written")
            world.served.good("DELETE", f"/hearth/v1/triggers/{name}")
            found = [report["document"], report["subject"].removeprefix("documents/"), report["params"]["city"]]
            if mode == "binary":
                found = [string.encode("latin-1").decode() for string in found]
            assert found == [path, path, "Zürich"]
            assert report["after"]["data"] == {"größe": mode}

    def test_other_databases_and_projects(self, world: World, firebase: Functions) -> None:
        firebase.clear()
        world.trigger(PATH, "created", firebase.url("created"), project="*", database="*")
        others = [("one", "(default)"), ("one", "other"), ("two", "other")]
        for project, database in others:
            world.served.put(
                "cities/rome/streets/via", project=f"{world.project}-{project}", database=database, d=database
            )
        world.settled()
        found = firebase.reports("created")
        assert sorted((report["project"].rsplit("-", 1)[1], report["database"]) for report in found) == others


class TestFunctionsFramework:
    """Functions of `functions-framework` alone, which takes every mode and content."""

    @pytest.mark.parametrize("content", ["protobuf", "json"])
    @pytest.mark.parametrize("mode", ["binary", "structured"])
    def test_modes_and_contents(self, world: World, framework: Functions, mode: str, content: str) -> None:
        framework.clear()
        url = framework.url("recorded")
        world.trigger("a/{b}", "updated" + WITH_AUTHOR, url, mode=mode, content=content)
        world.put("a/é", n=1, same=True)
        world.put("a/é", n=2, same=True)
        (report,) = framework.wait_for(1, "recorded")
        attributes, data = report["attributes"], report["data"]
        if report["is_bytes"]:
            data = Event.decoded(base64.b64decode(data))
        event = Event(attributes, data)
        assert report["is_bytes"] == (content == "protobuf")
        assert (event.before, event.after, event.mask) == ({"n": 1, "same": True}, {"n": 2, "same": True}, ["n"])
        assert data["value"]["name"] == data["oldValue"]["name"] == world.name("a/é")
        assert data["value"]["updateTime"] == attributes["time"]
        assert data["oldValue"]["createTime"] == data["value"]["createTime"] < data["value"]["updateTime"]
        document = attributes["document"]
        assert (document.encode("latin-1").decode() if mode == "binary" else document) == "a/é"
        assert attributes["datacontenttype"] == f"application/{content}"
        assert (attributes["type"], attributes["location"]) == (V1 + "updated" + WITH_AUTHOR, "us-central1")
        assert (attributes["authtype"], attributes["authid"]) == ("service_account", "owner")

    def test_functions_of_the_first_generation(self, world: World, framework: Functions) -> None:
        framework.clear()
        world.trigger("a/{b}", LEGACY + "write", framework.url("background"))
        world.put("a/é", n=1)
        world.put("a/é", n=2, m={"x": 1})
        world.delete("a/é")
        made, changed, gone = framework.wait_for(3, "background")
        assert "oldValue" not in made["data"] and made["data"]["updateMask"] == {}
        assert made["data"]["value"]["fields"] == {"n": {"integerValue": "1"}}
        assert changed["data"]["updateMask"] == {"fieldPaths": ["m", "n"]}
        assert changed["data"]["oldValue"] == made["data"]["value"]
        assert changed["time"] == changed["data"]["value"]["updateTime"]
        assert "value" not in gone["data"] and gone["data"]["oldValue"] == changed["data"]["value"]
        for report in (made, changed, gone):
            assert report["type"] == LEGACY + "write"
            # As in the service: of an object, Node's SDK makes no params, and a state before for a document that is new.
            assert report["resource"] == world.name("a/é")
        assert len({made["id"], changed["id"], gone["id"]}) == 3


# MARK: Which events there are


class TestEvents:
    def test_the_bytes_of_a_request(self, world: World) -> None:
        world.trigger("a/{b}", "created" + WITH_AUTHOR)
        world.put("a/é ", n=1)
        (request,) = world.endpoint.wait(1)
        time_of = request.header("ce-time")
        assert len(time_of) == 27 and time_of.endswith("Z")
        assert request.header("content-type") == request.header("ce-datacontenttype") == "application/protobuf"
        # A space at the end would not arrive, and name another document.
        assert request.headers["ce-document"] == "a/é%20".encode()
        assert request.headers["ce-subject"] == "documents/a/é%20".encode()
        assert request.header("ce-dataschema") == (
            "https://github.com/googleapis/google-cloudevents/blob/main/proto/google/events/cloud/firestore/v1/data.proto"
        )
        assert request.headers["ce-authid"] == b"owner" and request.attempt == 1
        version, subject, trigger = request.header("ce-id").split("-")
        assert [len(version), len(subject), len(trigger)] == [16, 16, 8]
        assert "authorization" not in request.headers

    def test_control_bytes_do_not_end_a_header(self, world: World) -> None:
        world.trigger("a/{b}")
        for character in ("\r\nx-evil: 1\r\n", "\x01", "\x7f"):
            world.put(f"a/{character}", n=1)
        requests = world.endpoint.wait(3)
        assert all("x-evil" not in request.headers for request in requests)
        assert {request.header("ce-document") for request in requests} == {"a/%0D%0Ax-evil: 1%0D%0A", "a/%01", "a/%7F"}
        names = {request.event.data["value"]["name"] for request in requests}
        assert names == {world.name(f"a/{character}") for character in ("\r\nx-evil: 1\r\n", "\x01", "\x7f")}

    def test_one_commit_has_its_net_effect(self, world: World) -> None:
        world.trigger()
        world.put("a/changed", n=0)
        world.put("a/renewed", n=0)
        world.put("a/gone", n=0)
        world.settled()
        world.endpoint.clear()
        world.commit(
            world.update("a/changed", n=1),
            world.update("a/changed", n=2, m=1),
            world.update("a/new", n=1),
            world.update("a/new", n=2),
            world.update("a/flash", n=1),
            {"delete": world.name("a/flash")},
            {"delete": world.name("a/renewed")},
            world.update("a/renewed", n=3),
            world.update("a/gone", n=1),
            {"delete": world.name("a/gone")},
        )
        world.settled()
        found = {event.document: event for event in world.endpoint.events()}
        assert len(world.endpoint.all()) == len(found)
        assert {name: (event.before, event.after) for name, event in found.items()} == {
            "a/changed": ({"n": 0}, {"n": 2, "m": 1}),
            "a/new": (None, {"n": 2}),
            "a/renewed": ({"n": 0}, {"n": 3}),
            "a/gone": ({"n": 0}, None),
        }
        renewed = found["a/renewed"].data
        assert renewed["oldValue"]["createTime"] < renewed["value"]["createTime"]
        assert found["a/changed"].data["oldValue"]["createTime"] == found["a/changed"].data["value"]["createTime"]
        assert found["a/changed"].mask == ["m", "n"]

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [("created", ["created"]), ("updated", ["updated"]), ("deleted", ["deleted"]), ("written", ["written"] * 3)],
    )
    def test_kinds(self, world: World, kind: str, expected: list[str]) -> None:
        world.trigger(kind=kind)
        world.put("a/b", n=1)
        world.put("a/b", n=2)
        world.delete("a/b")
        assert world.events() == [(found, "a/b") for found in expected]

    def test_what_changes_nothing_has_no_event(self, world: World) -> None:
        world.put("a/b", n=1)
        names = [world.trigger(kind=kind, name=kind) for kind in KINDS]
        world.put("a/b", n=1)
        world.delete("a/missing")
        world.commit({"verify": world.name("a/b"), "currentDocument": {"exists": True}})
        root = f"/v1/projects/{world.project}/databases/(default)/documents"
        for failing in (
            [world.update("a/x", n=1), {**world.update("a/b", n=9), "currentDocument": {"exists": False}}],
            [world.update("a/x", n=1), {"verify": world.name("a/none"), "currentDocument": {"exists": True}}],
        ):
            status, answer = world.served.ask("POST", f"{root}:commit", {"writes": failing})
            assert status in (400, 404, 409), answer
        status, _ = world.served.ask("DELETE", f"/emulator/v1/projects/{world.project}/databases/(default)/documents")
        assert status == 200
        assert world.events() == []
        assert [world.state(name)["delivered"] for name in names] == [0] * 4
        # After the clearing as before.
        world.put("a/b", n=1)
        world.settled()
        assert sorted(world.events()) == [("created", "a/b"), ("written", "a/b")]

    def test_an_update_needs_no_other_fields_only_another_time(self, world: World) -> None:
        """A transform that yields the same value changes nothing; a write that is the same over again neither."""
        world.put("a/b", n=1)
        world.trigger()
        transform = {"fieldPath": "n", "maximum": {"integerValue": "0"}}
        answer = world.commit({"transform": {"document": world.name("a/b"), "fieldTransforms": [transform]}})
        times = answer["writeResults"][0]["updateTime"]
        world.settled()
        changed = world.served.good("GET", f"/v1/{world.name('a/b')}")["updateTime"]
        # What the server says of the update time and what triggers see must agree.
        assert changed == times
        expected = 1 if changed == answer["commitTime"] else 0
        assert len(world.events()) == expected

    def test_masks(self, world: World) -> None:
        world.trigger(kind="updated")
        world.put("a/b", same={"deep": [1]}, map={"in": 1, "un.changed": 1, "gone": 1}, list=[1], gone=1)
        world.put("a/b", same={"deep": [1]}, map={"in": 2, "un.changed": 1, "a.b": 1}, list=[2], **{"x.y": 1})
        (request,) = world.endpoint.wait(1)
        assert request.event.mask == ["`x.y`", "gone", "list", "map.`a.b`", "map.gone", "map.in"]

    def test_patterns(self, world: World) -> None:
        patterns = {
            "one": "users/{u}",
            "deep": "users/{u=**}",
            "all": "{all=**}",
            "star": "users/*/posts/p*t",
            "literal": "users/ü.+(",
            "tail": "users/a/**",
        }
        urls = {}
        for name, pattern in patterns.items():
            urls[name] = f"{world.endpoint.url}{name}"
            world.trigger(pattern, url=urls[name], name=name)
        paths = ["users/a", "users/ü.+(", "users/a/posts/post", "users/a/posts/pt", "users/a/posts/past2", "other/x"]
        for path in paths:
            world.put(path, n=1)
        world.settled()
        found = {name: {e.document for e in world.endpoint.events(f"/{name}")} for name in patterns}
        assert found == {
            "one": {"users/a", "users/ü.+("},
            "deep": set(paths) - {"other/x"},
            "all": set(paths),
            "star": {"users/a/posts/post", "users/a/posts/pt"},
            "literal": {"users/ü.+("},
            "tail": {"users/a", "users/a/posts/post", "users/a/posts/pt", "users/a/posts/past2"},
        }

    def test_only_its_project_and_database(self, world: World) -> None:
        for name, more in {
            "mine": {},
            "other": {"database": "other"},
            "every": {"database": "*"},
            "all": {"project": "*", "database": "*"},
        }.items():
            world.trigger(f"{world.project}/{{x}}", url=world.endpoint.url + name, name=name, **more)
        path = f"{world.project}/d"
        for project in (world.project, world.project + "-b"):
            for database in ("(default)", "other"):
                world.served.put(path, project=project, database=database, n=1)
        world.settled()

        def found(name: str) -> list[tuple[str, str]]:
            return sorted(
                (e.attributes["project"], e.attributes["database"]) for e in world.endpoint.events("/" + name)
            )

        own, second = world.project, world.project + "-b"
        assert found("mine") == [(own, "(default)")]
        assert found("other") == [(own, "other")]
        assert found("every") == [(own, "(default)"), (own, "other")]
        assert found("all") == [(own, "(default)"), (own, "other"), (second, "(default)"), (second, "other")]

    def test_earlier_commits_have_none(self, world: World) -> None:
        world.put("a/before", n=1)
        world.trigger()
        world.put("a/after", n=1)
        assert world.events() == [("written", "a/after")]


class TestWaysToCommit:
    """Whatever commits makes events."""

    def test_a_transaction(self, world: World) -> None:
        world.trigger()
        calls = Calls(world.served.program.address)
        database = f"projects/{world.project}/databases/(default)"
        begun = calls("BeginTransaction", parse(METHODS["BeginTransaction"], {"database": database}))
        writes = [world.update("a/b", n=1), world.update("a/c", n=2)]
        request = parse(METHODS["Commit"], {"database": database, "writes": writes})
        request.transaction = begun.transaction
        calls("Commit", request)
        rolled = calls("BeginTransaction", parse(METHODS["BeginTransaction"], {"database": database}))
        undone = METHODS["Rollback"].request(database=database, transaction=rolled.transaction)
        calls("Rollback", undone)
        calls.close()
        assert sorted(world.events()) == [("written", "a/b"), ("written", "a/c")]
        # Of one commit: one version, one time.
        events = world.endpoint.events()
        assert len({event.id.split("-")[0] for event in events}) == 1
        assert len({event.attributes["time"] for event in events}) == 1

    def test_a_batch_write_of_which_some_fail(self, world: World) -> None:
        world.put("a/there", n=1)
        world.trigger()
        calls = Calls(world.served.program.address)
        database = f"projects/{world.project}/databases/(default)"
        writes = [
            world.update("a/x", n=1),
            {**world.update("a/there", n=2), "currentDocument": {"exists": False}},
            world.update("a/y", n=1),
        ]
        answer = calls("BatchWrite", parse(METHODS["BatchWrite"], {"database": database, "writes": writes}))
        calls.close()
        assert [status.code == 0 for status in answer.status] == [True, False, True]
        assert sorted(world.events()) == [("written", "a/x"), ("written", "a/y")]

    def test_a_write_stream(self, world: World) -> None:
        world.trigger()
        with grpc.insecure_channel(world.served.program.address) as channel:
            stream = Stream(channel, "Write")
            database = f"projects/{world.project}/databases/(default)"
            stream.send(WriteRequest(database=database))
            token = stream.take().stream_token
            for number in range(3):
                request = WriteRequest(stream_token=token)
                request.writes.append(json_format.ParseDict(world.update("a/b", n=number), message_class("Write")()))
                stream.send(request)
                token = stream.take().stream_token
            stream.cancel()
        world.settled()
        assert [event.after for event in world.endpoint.events()] == [{"n": 0}, {"n": 1}, {"n": 2}]

    def test_rest(self, world: World) -> None:
        world.trigger()
        root = f"/v1/projects/{world.project}/databases/(default)/documents"
        fields = {"fields": {"n": {"integerValue": "1"}}}
        world.served.good("POST", f"{root}/a?documentId=made", fields)
        world.served.good("PATCH", f"{root}/a/set", fields)
        world.served.good("DELETE", f"{root}/a/made")
        world.served.good("POST", f"{root}:batchWrite", {"writes": [world.update("a/batch", n=1)]})
        world.settled()
        found = sorted(
            (event.document, event.before, event.after) for event in world.endpoint.events() if event.before is None
        )
        assert found == [(f"a/{name}", None, {"n": 1}) for name in ("batch", "made", "set")]
        assert [(e.document, e.after) for e in world.endpoint.events() if e.before] == [("a/made", None)]


# MARK: Delivery


class TestDelivery:
    def test_the_order_of_each_document(self, world: World) -> None:
        choice = random.Random(5)
        under_way: dict[str, int] = defaultdict(int)
        at_once: list[str] = []

        def answer(request: Request) -> Reply | None:
            document = request.event.document
            with world.endpoint.lock:
                under_way[document] += 1
                if under_way[document] > 1:
                    at_once.append(document)
                fate = choice.random()
                under_way[document] -= 1
            return Reply(500) if fate < 0.2 else None if fate < 0.3 else Reply(204)

        world.endpoint.answer = answer
        world.trigger(retry={"minBackoff": "10ms", "maxBackoff": "20ms"})
        for number in range(60):
            world.commit(*(world.update(f"a/{name}", n=number) for name in "abcd"))
        world.settled()
        assert not at_once
        for name in "abcd":
            values = [event.after["n"] for event in world.endpoint.events() if event.document == f"a/{name}"]
            # Each is repeated until it is acknowledged, then comes the next.
            assert values == sorted(values) and sorted(set(values)) == list(range(60))

    def test_ids_and_bytes_are_the_same_in_every_attempt(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(503 if request.attempt < 4 else 200)
        world.trigger(retry={"minBackoff": "10ms"})
        for path in ("a/b", "a/c"):
            world.put(path, n=1)
        world.settled()
        by_document = defaultdict(list)
        for request in world.endpoint.all():
            by_document[request.event.document].append(request)
        for requests in by_document.values():
            assert [request.attempt for request in requests] == [1, 2, 3, 4]
            unlike = [{k: v for k, v in r.headers.items() if k != "x-hearth-attempt"} for r in requests]
            assert all(headers == unlike[0] for headers in unlike)
            assert len({request.body for request in requests}) == 1
        assert len({requests[0].event.id for requests in by_document.values()}) == 2

    def test_pauses_double(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(500 if request.attempt < 5 else 200)
        world.trigger(retry={"minBackoff": "100ms"})
        world.put("a/b", n=1)
        requests = world.endpoint.wait(5)
        gaps = [later.time - before.time for before, later in zip(requests, requests[1:], strict=False)]
        for number, gap in enumerate(gaps):
            # With a jitter of 20 %.
            assert gap >= 0.1 * 2**number * 0.8 - 0.005, gaps

    def test_retry_after(self, world: World) -> None:
        until_date = int(time.time()) + 3
        headers = {
            1: {"retry-after": "1"},
            2: {"retry-after": email.utils.formatdate(until_date, usegmt=True)},
            3: {"retry-after": "soon"},
            4: {"retry-after": "9" * 30},
        }
        arrived: list[float] = []

        def answer(request: Request) -> Reply:
            arrived.append(time.time())
            return (
                Reply(429 if request.attempt % 2 else 503, headers[request.attempt]) if request.attempt < 5 else Reply()
            )

        world.endpoint.answer = answer
        world.trigger(retry={"minBackoff": "10ms", "maxBackoff": "3s"})
        world.put("a/b", n=1)
        requests = world.endpoint.wait(5)
        assert requests[1].time - requests[0].time >= 0.99
        assert arrived[2] >= until_date
        world.settled()

    def test_without_retry_an_answered_failure_is_dropped(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(500 if request.event.after == {"n": 0} else 200)
        name = world.trigger(retry=False)
        for number in range(3):
            world.put("a/b", n=number)
        world.settled()
        assert [event.after["n"] for event in world.endpoint.events()] == [0, 1, 2]
        assert (world.state(name)["delivered"], world.state(name)["deadLetters"]) == (2, 0)
        series = f'hearth_trigger_events_total{{trigger="{name}",result='
        assert world.served.metric(series + '"dropped"}') == 1

    @pytest.mark.parametrize("retry", [False, {"maxAttempts": 1}])
    def test_an_endpoint_that_is_down_loses_nothing(self, world: World, retry: Any) -> None:
        port = free_port()
        name = world.trigger(url=f"http://127.0.0.1:{port}/", retry=retry)
        for number in range(20):
            world.put(f"a/{number % 3}", n=number)
        until(lambda: world.state(name)["state"] == "failing", lambda: world.state(name))
        state = world.state(name)
        assert (state["pending"], state["lastError"]["status"], state["deadLetters"]) == (20, "unreachable", 0)
        with Endpoint(port=port) as endpoint:
            world.settled()
            requests = endpoint.all()
            assert sorted(request.event.after["n"] for request in requests) == list(range(20))
            # What could not be connected is no attempt.
            assert {request.attempt for request in requests} == {1}
        assert world.state(name)["state"] == "active"

    def test_dead_letters_and_their_replay(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(500 if request.event.after["n"] in (1, 3) else 200)
        name = world.trigger(retry={"minBackoff": "10ms", "maxAttempts": 2})
        for number in range(5):
            world.put("a/b", n=number)
        world.settled()
        assert [event.after["n"] for event in world.endpoint.events()] == [0, 1, 1, 2, 3, 3, 4]
        path = f"/hearth/v1/triggers/{name}"
        letters = world.served.good("GET", f"{path}/dead-letters")["deadLetters"]
        sent = {event.id: event for event in world.endpoint.events()}
        assert [sent[letter["id"]].after["n"] for letter in letters] == [1, 3]
        for letter in letters:
            assert letter["document"] == world.name("a/b") and letter["attempts"] == 2
            assert letter["lastError"]["status"] == 500
            event = letter["event"]
            assert event["id"] == letter["id"] and event["data"]["value"] == sent[event["id"]].data["value"]
        # In pages.
        first = world.served.good("GET", f"{path}/dead-letters?limit=1")["deadLetters"]
        rest = world.served.good("GET", f"{path}/dead-letters?after={first[0]['id']}")["deadLetters"]
        assert first + rest == letters
        # Replayed, with the ids of before.
        world.endpoint.clear()
        world.endpoint.answer = lambda _: Reply()
        assert world.served.good("POST", f"{path}/replay", {"deadLetters": True}) == {"events": 2}
        world.settled()
        assert [event.id for event in world.endpoint.events()] == [letter["id"] for letter in letters]
        assert world.state(name)["deadLetters"] == 0
        assert world.served.good("GET", f"{path}/dead-letters") == {"deadLetters": []}

    def test_large_dead_letters_are_sent_again_whole(self, world: World) -> None:
        world.endpoint.answer = lambda _: Reply(400)
        name = world.trigger(retry={"maxAttempts": 1})
        for number in range(4):
            world.put(f"a/{number}", n=number, more=str(number) * 900_000)
        world.settled()
        given_up = {event.id: event.after for event in world.endpoint.events()}
        path = f"/hearth/v1/triggers/{name}"
        letters = world.served.good("GET", f"{path}/dead-letters")["deadLetters"]
        assert {letter["id"] for letter in letters} == set(given_up) and len(given_up) == 4
        world.endpoint.clear()
        # They die again, and are sent a second time.
        for _ in range(2):
            assert world.served.good("POST", f"{path}/replay", {"deadLetters": True}) == {"events": 4}
            world.settled()
            assert {event.id: event.after for event in world.endpoint.events()} == given_up
            world.endpoint.clear()
            world.endpoint.answer = lambda _: Reply()
        assert world.state(name)["deadLetters"] == 0

    def test_dead_letters_are_deleted(self, world: World) -> None:
        world.endpoint.answer = lambda _: Reply(500)
        name = world.trigger(retry={"maxAttempts": 1})
        for number in range(5):
            world.put(f"a/{number}", n=number)
        world.settled()
        assert world.state(name)["deadLetters"] == 5
        world.served.good("DELETE", f"/hearth/v1/triggers/{name}/dead-letters")
        assert world.state(name)["deadLetters"] == 0
        assert world.served.good("POST", f"/hearth/v1/triggers/{name}/replay", {"deadLetters": True}) == {"events": 0}

    def test_replay_since_a_time(self, world: World) -> None:
        name = world.trigger()
        world.put("a/b", n=0)
        world.settled()
        times = [world.commit(world.update("a/b", n=number))["commitTime"] for number in (1, 2)]
        world.settled()
        sent = [event.id for event in world.endpoint.events()]
        world.endpoint.clear()
        answer = world.served.good("POST", f"/hearth/v1/triggers/{name}/replay", {"since": times[0]})
        assert answer == {"events": 2}
        world.settled()
        # It includes its instant.
        assert [event.id for event in world.endpoint.events()] == sent[1:]
        assert [event.after for event in world.endpoint.events()] == [{"n": 1}, {"n": 2}]
        # A database that is younger than the retention has all of its commits.
        long_ago = {"since": "2020-01-01T00:00:00Z"}
        assert world.served.good("POST", f"/hearth/v1/triggers/{name}/replay", long_ago) == {"events": 3}
        assert world.served.good("POST", f"/hearth/v1/triggers/{name}/replay", {"since": "2100-01-01T00:00:00Z"}) == {
            "events": 0
        }
        world.settled()
        assert [event.id for event in world.endpoint.events()][2:] == sent

    def test_paused(self, world: World) -> None:
        name = world.trigger(paused=True)
        for number in range(3):
            world.put("a/b", n=number)
        state = world.state(name)
        assert (state["state"], state["pending"], state["delivered"]) == ("paused", 3, 0)
        assert state["oldestPending"].endswith("Z") and not world.endpoint.all()
        world.trigger()
        world.settled()
        assert [event.after["n"] for event in world.endpoint.events()] == [0, 1, 2]
        assert world.state(name)["state"] == "active" and "oldestPending" not in world.state(name)

    def test_another_url_gets_what_is_pending(self, world: World) -> None:
        world.trigger(url=f"http://127.0.0.1:{free_port()}/")
        for number in range(3):
            world.put("a/b", n=number)
        world.trigger()
        world.settled()
        assert [event.after["n"] for event in world.endpoint.events()] == [0, 1, 2]

    def test_without_order_one_that_fails_holds_up_no_other(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(500 if request.event.after == {"n": 0} else 200)
        name = world.trigger(order="none", retry={"minBackoff": "60s"})
        for number in range(10):
            world.put("a/b", n=number)
        until(lambda: world.state(name)["pending"] == 1, lambda: world.state(name))
        assert {event.after["n"] for event in world.endpoint.events()} == set(range(10))

    def test_requests_at_the_same_time(self, world: World) -> None:
        released = threading.Event()
        most = under_way = 0

        def answer(_: Request) -> Reply:
            nonlocal most, under_way
            with world.endpoint.lock:
                under_way += 1
                most = max(most, under_way)
            assert released.wait(PATIENCE)
            with world.endpoint.lock:
                under_way -= 1
            return Reply()

        world.endpoint.answer = answer
        name = world.trigger(concurrency=3)
        for number in range(20):
            world.put(f"a/{number}", n=number)
        world.endpoint.wait(3)
        # One of another trigger is not held up.
        with Endpoint() as other:
            world.trigger(url=other.url, name="other")
            world.put("a/more", n=1)
            other.wait(1)
        assert (most, len(world.endpoint.all()), world.state(name)["pending"]) == (3, 3, 21)
        released.set()
        world.settled()
        assert most == 3 and len(world.endpoint.all()) == 21

    @pytest.mark.parametrize("is_down", [False, True])
    def test_an_event_that_is_too_old_is_given_up(self, world: World, is_down: bool) -> None:
        """Whether the endpoint answers with failures or can't be reached."""
        world.endpoint.answer = lambda _: Reply(500)
        url = f"http://127.0.0.1:{free_port()}/" if is_down else world.endpoint.url
        name = world.trigger(url=url, retry={"minBackoff": "100ms", "maxBackoff": "200ms", "maxAge": "1s"})
        began = time.monotonic()
        for number in range(2):
            world.put("a/b", n=number)
        world.settled()
        assert time.monotonic() - began >= 1
        letters = world.served.good("GET", f"/hearth/v1/triggers/{name}/dead-letters")["deadLetters"]
        assert len(letters) == world.state(name)["deadLetters"] == 2
        statuses = {letter["lastError"]["status"] for letter in letters}
        # The second one is too old when it is the first one's successor, perhaps before it was ever sent.
        assert statuses <= ({"unreachable"} if is_down else {500, "unreachable"})

    def test_a_function_that_writes_makes_events(self, world: World) -> None:
        """The endpoint writes with the event's number plus one, until five."""

        def answer(request: Request) -> Reply:
            number = request.event.after["n"]
            if number < 5:
                world.put("a/b", n=number + 1)
            return Reply()

        world.endpoint.answer = answer
        world.trigger()
        world.put("a/b", n=0)
        world.endpoint.wait(6)
        world.settled()
        assert [event.after["n"] for event in world.endpoint.events()] == list(range(6))

    def test_metrics(self, world: World) -> None:
        world.endpoint.answer = lambda request: Reply(500 if request.event.after["n"] == 1 else 200)
        name = world.trigger(retry={"minBackoff": "10ms", "maxAttempts": 2})
        for number in range(3):
            world.put("a/b", n=number)
        world.settled()
        metric = world.served.metric
        assert metric(f'hearth_trigger_events_total{{trigger="{name}",result="delivered"}}') == 2
        assert metric(f'hearth_trigger_events_total{{trigger="{name}",result="dead"}}') == 1
        assert metric(f'hearth_trigger_attempts_total{{trigger="{name}",result="ok"}}') == 2
        assert metric(f'hearth_trigger_attempts_total{{trigger="{name}",result="status"}}') == 2
        assert metric(f'hearth_trigger_pending{{trigger="{name}"}}') == 0
        assert metric(f'hearth_trigger_oldest_pending_seconds{{trigger="{name}"}}') == 0
        assert metric(f'hearth_trigger_delivery_seconds_count{{trigger="{name}"}}') == 2


# MARK: Definitions


class TestFile:
    """Triggers of `hearth.json`."""

    def test_events_and_their_ids_outlive_the_server(self, tmp_path: Path) -> None:
        with (
            Endpoint(lambda _: Reply(500)) as endpoint,
            Served(
                tmp_path, {"t": definition(endpoint.url, retry={"minBackoff": "10ms", "maxBackoff": "50ms"})}
            ) as served,
        ):
            for number in range(10):
                served.put(f"a/{number}", n=number)
            until(lambda: len({event.id for event in endpoint.events()}) == 10)
            before = {event.document: (event.id, event.data) for event in endpoint.events()}
            for kills in (True, False):
                served.restart(kills=kills)
                assert served.trigger("t")["pending"] == 10
                endpoint.clear()
                until(lambda: len({event.id for event in endpoint.events()}) == 10)
                assert {event.document: (event.id, event.data) for event in endpoint.events()} == before
            endpoint.answer = lambda _: Reply()
            served.settled("t")
            served.restart()
            # What is acknowledged does not come again: nothing is pending after the start.
            endpoint.clear()
            assert served.trigger("t")["pending"] == 0
            served.put("a/fence", n=1)
            served.settled("t")
            assert {event.document for event in endpoint.events()} <= {"a/fence"}

    def test_reload(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint, Served(tmp_path, {"one": definition(endpoint.url + "one")}) as served:

            def names() -> list[str]:
                return [t["name"] for t in served.good("GET", "/hearth/v1/triggers")["triggers"]]

            assert names() == ["one"]
            served.write({"one": definition(endpoint.url + "one"), "two": definition(endpoint.url + "two", "a/{b}")})
            until(lambda: names() == ["one", "two"])
            served.put("a/b", n=1)
            served.settled("one", "two")
            assert [len(endpoint.all(f"/{name}")) for name in ("one", "two")] == [1, 1]

            def refuse(content: str) -> None:
                """A wrong file leaves those before in force."""
                before = logged(served, "those before stay in force")
                served.write(None, content)
                until(lambda: logged(served, "those before stay in force") == before + 1)
                assert names() == ["one", "two"]

            for wrong in ({"one": {**definition(endpoint.url), "url": "ftp://x/"}}, {"3": definition(endpoint.url)}):
                refuse(json.dumps({"triggers": wrong}))
            refuse('{"triggers": ')
            served.put("a/c", n=1)
            served.settled("one", "two")
            assert [len(endpoint.all(f"/{name}")) for name in ("one", "two")] == [2, 2]
            served.write({"two": definition(endpoint.url + "two", "a/{b}")})
            until(lambda: names() == ["two"])
            served.put("a/d", n=1)
            served.settled("two")
            assert [len(endpoint.all(f"/{name}")) for name in ("one", "two")] == [2, 3]

    def test_a_file_that_is_missing_keeps_its_triggers(self, tmp_path: Path) -> None:
        down = definition(f"http://127.0.0.1:{free_port()}/")
        with Served(tmp_path, {"t": down}) as served:
            served.put("a/b", n=1)
            (served.folder / "hearth.json").rename(served.folder / "away.json")
            until(lambda: logged(served, "The file is missing.") == 1)
            assert served.trigger("t")["pending"] == 1
            (served.folder / "away.json").rename(served.folder / "hearth.json")
            served.write({"t": down, "two": down})
            until(lambda: served.ask("GET", "/hearth/v1/triggers/two")[0] == 200)
            assert served.trigger("t")["pending"] == 1

    def test_a_trigger_that_goes_takes_its_events_with_it(self, tmp_path: Path) -> None:
        down = definition(f"http://127.0.0.1:{free_port()}/")
        with Endpoint() as endpoint, Served(tmp_path, {"gone": down}) as served:
            for number in range(7):
                served.put(f"a/{number}", n=number)
            assert served.trigger("gone")["pending"] == 7
            served.write({})
            until(lambda: served.ask("GET", "/hearth/v1/triggers/gone")[0] == 404)
            until(lambda: logged(served, "events=7"))
            # One of the same name that comes later has none of them.
            served.write({"gone": definition(endpoint.url)})
            until(lambda: served.ask("GET", "/hearth/v1/triggers/gone")[0] == 200)
            assert served.trigger("gone")["pending"] == 0
            served.put("a/new", n=1)
            served.settled("gone")
            assert [event.document for event in endpoint.events()] == ["a/new"]

    def test_one_that_goes_while_the_server_is_stopped(self, tmp_path: Path) -> None:
        down = definition(f"http://127.0.0.1:{free_port()}/")
        with Endpoint() as endpoint, Served(tmp_path, {"gone": down}) as served:
            served.put("a/b", n=1)
            served.write({})
            served.restart()
            served.put("a/c", n=1)
            served.write({"gone": definition(endpoint.url)})
            until(lambda: served.ask("GET", "/hearth/v1/triggers/gone")[0] == 200)
            served.put("a/new", n=1)
            served.settled("gone")
            assert [event.document for event in endpoint.events()] == ["a/new"]

    def test_a_secret(self, tmp_path: Path) -> None:
        (tmp_path / "fn.secret").write_text("s3cret \n")
        with Endpoint() as endpoint:
            triggers = {"t": definition(endpoint.url, secretFile="fn.secret")}
            with Served(tmp_path, triggers) as served:
                served.put("a/b", n=1)
                (request,) = endpoint.wait(1)
                assert request.header("authorization") == "Bearer s3cret"
                listed = json.dumps(served.good("GET", "/hearth/v1/triggers"))
                assert "s3cret" not in listed and "fn.secret" in listed

    def test_location(self, tmp_path: Path) -> None:
        with (
            Endpoint() as endpoint,
            Served(tmp_path, {"t": definition(endpoint.url)}, location="europe-west6") as served,
        ):
            served.put("a/b", n=1)
            (request,) = endpoint.wait(1)
            assert request.header("ce-location") == "europe-west6"

    @pytest.mark.parametrize(
        ("change", "member"),
        [
            ({"url": "ftp://x/"}, "url"),
            ({"url": "http://u:p@x/"}, "url"),
            ({"url": "http://x/#f"}, "url"),
            ({"url": None}, "url"),
            ({"event": "google.cloud.firestore.document.v1.changed"}, "event"),
            ({"document": "a"}, "document"),
            ({"document": "a/{b}/c"}, "document"),
            ({"document": "a/{b}/{b}/{c}"}, "document"),
            ({"document": "{a=**}/{b=**}"}, "document"),
            ({"document": "a/*x*"}, "document"),
            ({"document": "a//b"}, "document"),
            ({"document": "a/.."}, "document"),
            ({"ref": "x"}, "ref"),
            ({"mode": "text"}, "mode"),
            ({"content": "xml"}, "content"),
            ({"order": "time"}, "order"),
            ({"concurrency": 0}, "concurrency"),
            ({"concurrency": 257}, "concurrency"),
            ({"timeout": "2h"}, "timeout"),
            ({"timeout": "1"}, "timeout"),
            ({"retry": {"maxAge": "8d"}}, "retry.maxAge"),
            ({"retry": {"maxAttempts": 0}}, "retry.maxAttempts"),
            ({"retry": {"times": 3}}, "retry.times"),
            ({"paused": "no"}, "paused"),
            ({"urll": "x"}, "urll"),
            ({"secretFile": "none"}, "secretFile"),
        ],
    )
    def test_what_is_wrong_ends_the_start(self, tmp_path: Path, change: dict[str, Any], member: str) -> None:
        made = {**definition("http://127.0.0.1:1/", "a/{b}"), **change}
        made = {name: content for name, content in made.items() if content is not None}
        (tmp_path / "hearth.json").write_text(json.dumps({"triggers": {"presence": made}}))
        code, log = refused(tmp_path, "--port", "0", "--memory")
        assert code == 78
        # A member that is missing is named in the sentence.
        expected = f"triggers.presence.{member}: " if change != {"url": None} else 'triggers.presence: "url" is missing'
        assert expected in log and log.count("\n") == 1, log

    @pytest.mark.parametrize("name", ["1st", "a b", "", "x" * 64, "é"])
    def test_wrong_names(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "hearth.json").write_text(json.dumps({"triggers": {name: definition("http://127.0.0.1:1/")}}))
        code, log = refused(tmp_path, "--port", "0", "--memory")
        assert code == 78 and "triggers" in log


def logged(served: Served, what: str) -> int:
    """How often the server's log, as far as it is there, has a string."""
    process = served.program.process
    assert process.stderr is not None
    while select.select([process.stderr], [], [], 0)[0]:
        piece = os.read(process.stderr.fileno(), 65_536).decode()
        if not piece:
            break
        served.log += piece
    return served.log.count(what)


class TestAdministrators:
    """`/hearth/v1/triggers`."""

    def test_errors(self, world: World) -> None:
        ask = world.served.ask

        def error(*request: Any, **more: Any) -> tuple[int, str, str]:
            status, answer = ask(*request, **more)
            assert answer["error"]["code"] == status
            return status, answer["error"]["status"], answer["error"]["message"]

        base = "/hearth/v1/triggers"
        good = definition(world.endpoint.url)
        for body, member in (
            ({**good, "url": "x"}, "url"),
            ({**good, "document": "a"}, "document"),
            ({**good, "nonsense": 1}, "nonsense"),
            ({**good, "retry": {"minBackoff": "1y"}}, "retry.minBackoff"),
            ({**good, "concurrency": "4"}, "concurrency"),
        ):
            code, status, message = error("PUT", f"{base}/x", body)
            assert (code, status) == (400, "INVALID_ARGUMENT") and member in message
        assert error("PUT", f"{base}/x", b"{")[:2] == (400, "INVALID_ARGUMENT")
        assert error("PUT", f"{base}/1x", good)[:2] == (400, "INVALID_ARGUMENT")
        for method, path, body in (
            ("GET", "/none", None),
            ("DELETE", "/none", None),
            ("GET", "/none/dead-letters", None),
            ("DELETE", "/none/dead-letters", None),
            ("POST", "/none/replay", {"deadLetters": True}),
            ("PATCH", "/none", {}),
        ):
            code, status, _ = error(method, base + path, body)
            assert (code, status) == (404, "NOT_FOUND")
        name = world.trigger()
        for body in (
            {},
            {"deadLetters": False},
            {"since": "yesterday"},
            {"deadLetters": True, "since": "2026-01-01T00:00:00Z"},
        ):
            assert error("POST", f"{base}/{name}/replay", body)[:2] == (400, "INVALID_ARGUMENT")
        for query in ("limit=0", "limit=x", "after=none", "nonsense=1"):
            assert error("GET", f"{base}/{name}/dead-letters?{query}")[:2] == (400, "INVALID_ARGUMENT")
        assert world.state(name)["source"] == "api"

    @pytest.mark.parametrize("options", [[], ["--no-emulator"]])
    def test_they_are_for_administrators(self, tmp_path: Path, options: list[str]) -> None:
        """In local development without rules everybody is one."""
        (tmp_path / "firestore.rules").write_text(
            "service cloud.firestore { match /databases/{d}/documents { match /{all=**} { allow read, write; } } }"
        )
        with Served(tmp_path, {"t": definition("http://127.0.0.1:1/")}, "--memory", *options) as served:
            for token, expected in ((unsigned("eva"), {401, 403}), ("nonsense", {401}), (None, {401, 403})):
                for method, path in (
                    ("GET", ""),
                    ("GET", "/t"),
                    ("PUT", "/x"),
                    ("DELETE", "/t"),
                    ("GET", "/t/dead-letters"),
                    ("DELETE", "/t/dead-letters"),
                    ("POST", "/t/replay"),
                ):
                    status, answer = served.ask(method, f"/hearth/v1/triggers{path}", token=token)
                    assert status in expected and answer["error"]["code"] == status

    def test_credentials(self, tmp_path: Path) -> None:
        """One that may only read changes nothing; one of a project doesn't administer the server."""
        secrets = {"all": "a" * 30, "reader": "r" * 30, "project": "p" * 30}
        for name, secret in secrets.items():
            (tmp_path / f"{name}.secret").write_text(secret)
        credentials = [
            {"name": "all", "secretFile": "all.secret"},
            {"name": "reader", "secretFile": "reader.secret", "scope": "read-only"},
            {"name": "project", "secretFile": "project.secret", "project": "demo-hearth"},
        ]
        auth = {"credentials": credentials}
        with (
            Endpoint() as endpoint,
            Served(tmp_path, None, "--memory", "--no-emulator", auth=auth) as served,
        ):
            body = definition(endpoint.url, kind="written" + WITH_AUTHOR)
            for name, put, get in (("reader", 403, 404), ("project", 403, 403), ("all", 200, 200)):
                assert served.ask("PUT", "/hearth/v1/triggers/x", body, token=secrets[name])[0] == put
                assert served.ask("GET", "/hearth/v1/triggers/x", token=secrets[name])[0] == get
            assert served.ask("GET", "/hearth/v1/triggers/x", token=secrets["reader"])[0] == 200
            # Events name the credential.
            status, _ = served.ask("PATCH", f"/v1/{name_of('a/b')}", {"fields": {}}, token=secrets["project"])
            assert status == 200
            (request,) = endpoint.wait(1)
            assert (request.header("ce-authtype"), request.header("ce-authid")) == ("service_account", "project")

    def test_one_of_the_file_is_changed_there(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint, Served(tmp_path, {"t": definition(endpoint.url)}, "--memory") as served:
            for method, body in (("PUT", definition(endpoint.url, "a/{b}")), ("DELETE", None)):
                status, answer = served.ask(method, "/hearth/v1/triggers/t", body)
                assert status == 409 and "hearth.json" in answer["error"]["message"]
            assert served.trigger("t")["source"] == "file"

    def test_they_outlive_the_server(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint, Served(tmp_path) as served:
            body = definition(endpoint.url, "a/{b}", concurrency=3)
            served.good("PUT", "/hearth/v1/triggers/kept", body)
            served.good("PUT", "/hearth/v1/triggers/gone", body)
            served.good("DELETE", "/hearth/v1/triggers/gone")
            served.restart()
            (listed,) = served.good("GET", "/hearth/v1/triggers")["triggers"]
            assert {**listed, **body} == listed and (listed["name"], listed["source"]) == ("kept", "api")
            served.put("a/b", n=1)
            endpoint.wait(1)

    def test_at_most_500(self, tmp_path: Path) -> None:
        with Served(tmp_path, None, "--memory") as served:
            body = definition("http://127.0.0.1:1/")
            for number in range(500):
                served.good("PUT", f"/hearth/v1/triggers/t{number}", body)
            status, answer = served.ask("PUT", "/hearth/v1/triggers/more", body)
            assert (status, answer["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")
            # One of them may be changed.
            served.good("PUT", "/hearth/v1/triggers/t7", {**body, "paused": True})
            assert len(served.good("GET", "/hearth/v1/triggers")["triggers"]) == 500

    def test_one_that_is_deleted_drops_its_events(self, world: World) -> None:
        name = world.trigger(url=f"http://127.0.0.1:{free_port()}/")
        for number in range(5):
            world.put("a/b", n=number)
        world.served.good("DELETE", f"/hearth/v1/triggers/{name}")
        assert world.served.ask("GET", f"/hearth/v1/triggers/{name}")[0] == 404
        world.trigger()
        world.settled()
        assert world.endpoint.events() == []
