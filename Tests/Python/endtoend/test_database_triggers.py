"""Triggers of the Realtime Database: what is sent, byte for byte, what functions of Google's SDKs make of it, and that
every way to write has its events.

Nothing here waits for a fixed time: the server counts exactly which events are not settled.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterator
from typing import Any

import firebase_admin
import pytest
from firebase_admin import db

from endtoend.database_wire import Tree, Wire, token
from support.events import Endpoint, Functions, Reply, Request, Served, functions, until
from support.program import BINARY

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

V1 = "google.firebase.database.ref.v1."
LEGACY = "providers/google.firebase.database/eventTypes/ref."
KINDS = {"created": "create", "updated": "update", "deleted": "delete", "written": "write"}
TYPE = b'{"@type":"type.googleapis.com/google.events.firebase.database.v1.ReferenceEventData",'
PATTERN = "rooms/{room}/messages/{message}"
PLACE = "rooms/a/messages/m"


class Namespace:
    """A namespace of one test on a server that tests share, its triggers, and an endpoint for them."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.name = f"demo-{uuid.uuid4().hex[:12]}"
        self.tree = Tree(served.program.address, self.name)
        self.endpoint = Endpoint()
        self.triggers: list[str] = []

    def close(self) -> None:
        for name in self.triggers:
            self.served.ask("DELETE", f"/hearth/v1/triggers/{name}")
        self.tree.close()
        self.endpoint.close()

    def trigger(self, kind: str = "written", ref: str = PATTERN, url: str | None = None, **more: Any) -> str:
        """Makes a trigger for this namespace; returns its name."""
        name = f"t{len(self.triggers)}-{self.name}"
        event = kind if "/" in kind else V1 + kind
        body = {"event": event, "ref": ref, "url": url or self.endpoint.url, "instance": self.name, **more}
        self.served.good("PUT", f"/hearth/v1/triggers/{name}", body)
        self.triggers.append(name)
        return name

    def settled(self) -> None:
        self.served.settled(*self.triggers)

    def requests(self) -> list[Request]:
        """What came, when all of it has come."""
        self.settled()
        return self.endpoint.all()

    def events(self) -> list[tuple[str, str, Any, Any]]:
        """Kind, location, `data` and `delta` of what came."""
        found = []
        for request in self.requests():
            body = json.loads(request.body)
            kind, place = request.header("ce-type").removeprefix(V1), request.headers["ce-ref"].decode()
            found.append((kind, place, body["data"], body["delta"]))
        return found

    def authors(self) -> list[tuple[str, str | None]]:
        return [
            (request.header("ce-authtype"), request.header("ce-authid") if "ce-authid" in request.headers else None)
            for request in self.requests()
        ]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("triggers")) as made:
        yield made


@pytest.fixture
def namespace(served: Served) -> Iterator[Namespace]:
    made = Namespace(served)
    yield made
    made.close()


# MARK: Functions

FIREBASE = """
import json, os
from firebase_functions import db_fn

REF = "rooms/{room}/messages/{message}"

def report(function, event, **what):
    common = {"id": event.id, "type": event.type, "params": event.params, "reference": event.reference,
              "instance": event.instance, "location": event.location, "source": event.source,
              "subject": event.subject, "time": event.time.timestamp(), "specversion": event.specversion,
              "host": event.firebase_database_host, "auth": [event.auth_type, event.auth_id]}
    with open(os.environ["REPORT"], "a") as file:
        file.write(json.dumps({"function": function, **common, **what}) + "\\n")

@db_fn.on_value_written(reference=REF)
def written(event):
    report("written", event, states=[event.data.before, event.data.after])

@db_fn.on_value_updated(reference=REF)
def updated(event):
    report("updated", event, states=[event.data.before, event.data.after])

@db_fn.on_value_created(reference=REF)
def created(event):
    report("created", event, states=event.data)

@db_fn.on_value_deleted(reference=REF)
def deleted(event):
    report("deleted", event, states=event.data)
"""

FRAMEWORK = """
import json, os
import functions_framework

def report(function, **what):
    with open(os.environ["REPORT"], "a") as file:
        file.write(json.dumps({"function": function, **what}) + "\\n")

def background(data, context):
    report("background", data=data, id=context.event_id, type=context.event_type, time=context.timestamp,
           resource=context.resource)

@functions_framework.cloud_event
def recorded(event):
    report("recorded", attributes=dict(event._get_attributes()), data=event.data)
"""


@pytest.fixture(scope="module")
def firebase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    with functions(tmp_path_factory.mktemp("firebase"), FIREBASE, KINDS) as made:
        yield made


@pytest.fixture(scope="module")
def framework(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Functions]:
    with functions(tmp_path_factory.mktemp("framework"), FRAMEWORK, ["recorded", "background:event"]) as made:
        yield made


class TestFirebaseFunctions:
    """Functions of `firebase-functions`."""

    @pytest.mark.parametrize("mode", ["binary", "structured"])
    def test_each_kind_gets_its_events(self, namespace: Namespace, firebase: Functions, mode: str) -> None:
        firebase.clear()
        for kind in KINDS:
            namespace.trigger(kind, url=firebase.url(kind), mode=mode)
        first, second = {"by": "ann", "old": 1, "deep": {"x": 1}}, {"by": "ann", "deep": {"x": 1, "y": [2, 3]}}
        namespace.tree.put(PLACE, first)
        namespace.tree.put(PLACE, second)
        namespace.tree.delete(PLACE)
        # Not what they are for.
        namespace.tree.put("rooms/a/name", "A")
        namespace.settled()
        # Objects are merged: arrays in them come as objects.
        merged = {"by": "ann", "deep": {"x": 1, "y": {"0": 2, "1": 3}}}
        found = {kind: [report["states"] for report in firebase.reports(kind)] for kind in KINDS}
        assert found == {
            "created": [first],
            "updated": [[first, merged]],
            "deleted": [second],
            "written": [[None, first], [first, merged], [second, None]],
        }
        reports = firebase.reports()
        for report in reports:
            source = f"//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/{namespace.name}"
            assert report["params"] == {"room": "a", "message": "m"}
            assert (report["reference"], report["subject"]) == (PLACE, f"refs/{PLACE}")
            assert (report["instance"], report["source"]) == (namespace.name, source)
            assert (report["location"], report["host"]) == ("us-central1", "firebaseio.com")
            assert report["type"] == V1 + report["function"] and report["specversion"] == "1.0"
            assert report["auth"] == ["admin", None]
        assert len({report["id"] for report in reports}) == len(reports) == 6

    def test_values_of_each_type(self, namespace: Namespace, firebase: Functions) -> None:
        firebase.clear()
        namespace.trigger(url=firebase.url("written"))
        values = [True, 0, -7, 2**53, 1.5, "", "é\u0000\U0001f600", ["a", "b"], {"é": {"x": False}}, None]
        for value in values:
            namespace.tree.put(PLACE, value)
        namespace.settled()
        states = [report["states"] for report in firebase.reports("written")]
        assert [after for _, after in states] == values
        # Between two objects, arrays are written as objects, so that SDKs merge them alike.
        assert [before for before, _ in states] == [None, *values[:7], {"0": "a", "1": "b"}, values[8]]

    def test_who_made_the_change(self, namespace: Namespace, firebase: Functions) -> None:
        firebase.clear()
        namespace.tree.rules({".read": True, ".write": True})
        namespace.trigger(url=firebase.url("written"))
        for number, auth in enumerate([f"Bearer {token('eva')}", None, "Bearer owner"]):
            assert namespace.tree.send("PUT", PLACE, number, auth=auth)[0] == 200
        found = [report["auth"] for report in firebase.wait_for(3, "written")]
        assert found == [["app_user", "eva"], ["unauthenticated", None], ["admin", None]]

    def test_keys_that_are_not_ascii(self, namespace: Namespace, firebase: Functions) -> None:
        """In structured mode they are right; in binary mode the SDK reads the UTF-8 of the header as Latin-1."""
        for mode in ("structured", "binary"):
            firebase.clear()
            name = namespace.trigger(url=firebase.url("written"), mode=mode)
            namespace.tree.put("rooms/Zürich/messages/日本", mode)
            (report,) = firebase.wait_for(1, "written")
            namespace.served.good("DELETE", f"/hearth/v1/triggers/{name}")
            namespace.triggers.remove(name)
            found = [report["reference"], report["params"]["room"], report["params"]["message"]]
            if mode == "binary":
                found = [string.encode("latin-1").decode() for string in found]
            assert found == ["rooms/Zürich/messages/日本", "Zürich", "日本"]
            assert report["states"][1] == mode


class TestFunctionsFramework:
    def test_functions_of_the_first_generation(self, namespace: Namespace, framework: Functions) -> None:
        framework.clear()
        for kind in KINDS.values():
            namespace.trigger(LEGACY + kind, url=framework.url("background"))
        namespace.tree.put(PLACE, {"n": 1})
        namespace.tree.put(PLACE, {"n": 2})
        namespace.tree.delete(PLACE)
        namespace.settled()
        found = framework.reports("background")
        changes = {"create": (None, {"n": 1}), "update": ({"n": 1}, {"n": 2}), "delete": ({"n": 2}, None)}
        expected = [(kind, *changes[kind]) for kind in changes] + [("write", *change) for change in changes.values()]
        seen = [(r["type"].removeprefix(LEGACY), r["data"]["data"], r["data"]["delta"]) for r in found]
        assert sorted(seen, key=repr) == sorted(expected, key=repr)
        for report in found:
            assert report["resource"] == f"projects/_/instances/{namespace.name}/refs/{PLACE}"
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", report["time"])
        assert len({report["id"] for report in found}) == 6

    def test_the_framework_turns_legacy_events_into_cloud_events(
        self, namespace: Namespace, framework: Functions
    ) -> None:
        """And the other way about: what it needs for that is there."""
        framework.clear()
        namespace.trigger(LEGACY + "write", url=framework.url("recorded"))
        namespace.trigger("written", url=framework.url("background"))
        namespace.tree.put(PLACE, [1])
        namespace.settled()
        (recorded,), (background,) = framework.reports("recorded"), framework.reports("background")
        assert recorded["data"] == {"data": None, "delta": [1]}
        attributes = recorded["attributes"]
        assert (attributes["type"], attributes["subject"]) == (V1 + "written", f"refs/{PLACE}")
        assert attributes["source"].endswith(f"/projects/_/locations/us-central1/instances/{namespace.name}")
        assert (background["data"]["data"], background["data"]["delta"]) == (None, [1])
        assert background["resource"] == f"projects/_/instances/{namespace.name}/refs/{PLACE}"
        assert background["type"] == LEGACY + "write"


# MARK: Bytes


CHANGES: list[tuple[str, Any, Any, bytes]] = [
    ("created", None, {"b": 1.5, "a": [True, "é"]}, b'"data":null,"delta":{"a":[true,"\xc3\xa9"],"b":1.5}'),
    ("created", None, 'x"\n', b'"data":null,"delta":"x\\"\\n"'),
    ("updated", 1, 2, b'"data":1,"delta":2'),
    ("updated", 1, {"a": 1}, b'"data":1,"delta":{"a":1}'),
    ("updated", {"a": 1}, "x", b'"data":{"a":1},"delta":"x"'),
    (
        "updated",
        {"same": 1, "gone": {"x": 1}, "deep": {"same": 1, "n": 1}},
        {"same": 1, "deep": {"same": 1, "n": 2}, "new": True},
        b'"data":{"deep":{"n":1,"same":1},"gone":{"x":1},"same":1},"delta":{"deep":{"n":2},"gone":null,"new":true}',
    ),
    ("updated", ["a", "b"], ["a", "c"], b'"data":{"0":"a","1":"b"},"delta":{"1":"c"}'),
    ("deleted", ["a", {"x": 1}], None, b'"data":["a",{"x":1}],"delta":null'),
    ("updated", {"a": 1, ".priority": 1}, {"a": 2, ".priority": 2}, b'"data":{"a":1},"delta":{"a":2}'),
]


class TestBytes:
    """The whole request but for its times and ids, which are compared by their form."""

    @pytest.mark.parametrize(("kind", "before", "after", "data"), CHANGES)
    @pytest.mark.parametrize("type_of", ["kind", "written"])
    def test_binary(self, namespace: Namespace, kind: str, before: Any, after: Any, data: bytes, type_of: str) -> None:
        name = kind if type_of == "kind" else "written"
        namespace.tree.put(PLACE, before)
        namespace.trigger(name)
        namespace.tree.put(PLACE, after)
        (request,) = namespace.requests()
        assert request.body == TYPE + data + b"}"
        headers = dict(request.headers)
        assert re.fullmatch(rb"[0-9a-f]{16}-[0-9a-f]{16}-[0-9a-f]{8}", headers.pop("ce-id"))
        assert re.fullmatch(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", headers.pop("ce-time"))
        source = f"//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/{namespace.name}"
        assert {name: value.decode() for name, value in headers.items()} == {
            "host": f"127.0.0.1:{namespace.endpoint.port}",
            "content-length": str(len(request.body)),
            "content-type": "application/json",
            "accept": "*/*",
            "x-hearth-attempt": "1",
            "user-agent": headers["user-agent"].decode(),
            "ce-specversion": "1.0",
            "ce-source": source,
            "ce-type": V1 + name,
            "ce-subject": f"refs/{PLACE}",
            "ce-datacontenttype": "application/json",
            "ce-ref": PLACE,
            "ce-instance": namespace.name,
            "ce-firebasedatabasehost": "firebaseio.com",
            "ce-location": "us-central1",
            "ce-authtype": "admin",
        }

    def test_structured(self, namespace: Namespace) -> None:
        namespace.trigger("created", mode="structured")
        namespace.tree.put(PLACE, {"a": 1})
        (request,) = namespace.requests()
        assert request.header("content-type") == "application/cloudevents+json; charset=utf-8"
        assert not [name for name in request.headers if name.startswith("ce-")]
        content = json.loads(request.body)
        source = f"//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/{namespace.name}"
        assert request.body.decode() == (
            f'{{"specversion":"1.0","id":"{content["id"]}","source":"{source}","type":"{V1}created",'
            f'"subject":"refs/{PLACE}","time":"{content["time"]}","datacontenttype":"application/json",'
            f'"ref":"{PLACE}","instance":"{namespace.name}","firebasedatabasehost":"firebaseio.com",'
            f'"location":"us-central1","authtype":"admin","data":{TYPE.decode()}"data":null,"delta":{{"a":1}}}}}}'
        )

    @pytest.mark.parametrize("author", ["admin", "nobody", "user"])
    def test_first_generation(self, namespace: Namespace, author: str) -> None:
        namespace.tree.rules({".read": True, ".write": True})
        namespace.trigger(LEGACY + "create")
        user = token("eva", firebase={"sign_in_provider": "password"})
        claims = json.loads(_claims(user))
        auth = {"admin": "Bearer owner", "nobody": None, "user": f"Bearer {user}"}[author]
        assert namespace.tree.send("PUT", PLACE, {"a": 1}, auth=auth)[0] == 200
        (request,) = namespace.requests()
        assert request.header("content-type") == "application/json"
        assert not [name for name in request.headers if name.startswith("ce-")]
        content = json.loads(request.body)
        start, end = request.body.decode().split(',"auth":', 1)
        assert start == (
            f'{{"eventType":"{LEGACY}create","eventId":"{content["eventId"]}","timestamp":"{content["timestamp"]}",'
            f'"resource":"projects/_/instances/{namespace.name}/refs/{PLACE}","domain":"firebaseio.com",'
            '"params":{"room":"a","message":"m"}'
        )
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", content["timestamp"])
        data = ',"data":{"data":null,"delta":{"a":1}}}'
        match author:
            case "admin":
                assert end == '{"admin":true}' + data
            case "nobody":
                assert end == '{"admin":false}' + data
            case "user":
                assert end.startswith('{"admin":false,"variable":{"uid":"eva","provider":"password","token":{')
                assert end.endswith("}}}" + data)
                assert content["auth"]["variable"]["token"].items() >= claims.items()


def _claims(user: str) -> bytes:
    part = user.split(".")[1]
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


# MARK: Which events there are


class TestEvents:
    def test_a_write_above_at_and_below(self, namespace: Namespace) -> None:
        namespace.trigger()
        namespace.tree.put("rooms", {"a": {"messages": {"m": 1, "n": 2}}, "b": {"messages": {"m": 3}, "name": "B"}})
        assert sorted(namespace.events()) == [
            ("written", "rooms/a/messages/m", None, 1),
            ("written", "rooms/a/messages/n", None, 2),
            ("written", "rooms/b/messages/m", None, 3),
        ]
        namespace.endpoint.clear()
        namespace.tree.put(PLACE, {"x": {"y": 1}})
        namespace.tree.put(f"{PLACE}/x/z", 2)
        assert namespace.events() == [
            ("written", PLACE, 1, {"x": {"y": 1}}),
            ("written", PLACE, {"x": {"y": 1}}, {"x": {"z": 2}}),
        ]
        namespace.endpoint.clear()
        namespace.tree.delete("")
        assert sorted(place for _, place, _, _ in namespace.events()) == [
            "rooms/a/messages/m",
            "rooms/a/messages/n",
            "rooms/b/messages/m",
        ]

    def test_what_changes_nothing_has_no_event(self, namespace: Namespace) -> None:
        namespace.tree.put(PLACE, {"a": [1, 2]})
        for kind in (*KINDS, *(LEGACY + kind for kind in KINDS.values())):
            namespace.trigger(kind)
        namespace.tree.put(PLACE, {"a": {"0": 1, "1": 2}})
        namespace.tree.patch(PLACE, {"none": None})
        namespace.tree.delete("rooms/none/messages/none")
        namespace.tree.put(f"{PLACE}/.priority", 7)
        namespace.tree.put("rooms/a/name", "A")
        # What is refused.
        assert namespace.tree.send("PUT", PLACE, {"a/b": 1})[0] == 400
        namespace.tree.rules({PLACE.split("/")[0]: {".validate": False}})
        user = f"Bearer {token('eva')}"
        assert namespace.tree.send("PUT", PLACE, 1, auth=user)[0] == 401
        assert namespace.requests() == []
        assert [namespace.served.trigger(name)["delivered"] for name in namespace.triggers] == [0] * 8

    def test_one_update_of_many_locations(self, namespace: Namespace) -> None:
        """Is one change: each location has one event, with the whole of the difference."""
        namespace.tree.put("rooms/a/messages", {"m": {"x": 1, "y": 1}, "n": 1})
        namespace.trigger()
        namespace.tree.patch(
            "rooms", {"a/messages/m/x": 2, "a/messages/m/y": None, "b/messages/k": "new", "a/messages/n": None}
        )
        assert sorted(namespace.events()) == [
            ("written", "rooms/a/messages/m", {"x": 1, "y": 1}, {"x": 2, "y": None}),
            ("written", "rooms/a/messages/n", 1, None),
            ("written", "rooms/b/messages/k", None, "new"),
        ]

    def test_writes_without_events(self, namespace: Namespace) -> None:
        namespace.tree.rules({".read": True, ".write": True})
        name = namespace.trigger()
        assert namespace.tree.send("PUT", PLACE, 1, query="&disableTriggers=true")[0] == 200
        user = f"Bearer {token('eva')}"
        assert namespace.tree.send("PUT", PLACE, 2, query="&disableTriggers=true", auth=user)[0] == 401
        assert namespace.requests() == [] and namespace.served.trigger(name)["delivered"] == 0
        namespace.tree.put(PLACE, 3)
        assert namespace.events() == [("written", PLACE, 1, 3)]

    def test_only_its_namespaces(self, namespace: Namespace) -> None:
        namespace.trigger(instance="demo-*", ref="only/{x}", url=namespace.endpoint.url + "some")
        namespace.trigger(ref="only/{x}", url=namespace.endpoint.url + "one")
        other = Tree(namespace.served.program.address, f"other-{namespace.name}")
        sibling = Tree(namespace.served.program.address, f"{namespace.name}-2")
        for tree in (namespace.tree, other, sibling):
            tree.put("only/x", 1)
        other.close()
        sibling.close()
        namespace.settled()

        def found(path: str) -> list[str]:
            return sorted(request.header("ce-instance") for request in namespace.endpoint.all(path))

        assert found("/some") == [namespace.name, f"{namespace.name}-2"]
        assert found("/one") == [namespace.name]

    def test_the_events_of_a_location_are_in_order_and_have_one_id(self, namespace: Namespace) -> None:
        """Every second attempt fails, and every fourth answer is lost."""
        count = iter(range(1 << 30))

        def answer(_: Request) -> Reply | None:
            number = next(count)
            return None if number % 4 == 3 else Reply(500 if number % 2 == 0 else 200)

        namespace.endpoint.answer = answer
        namespace.trigger(retry={"minBackoff": "10ms", "maxBackoff": "20ms"})
        for number in range(1, 21):
            namespace.tree.put(PLACE, number)
        deltas: dict[str, Any] = {}
        bodies: dict[str, set[bytes]] = {}
        for request in namespace.requests():
            deltas.setdefault(request.header("ce-id"), json.loads(request.body)["delta"])
            bodies.setdefault(request.header("ce-id"), set()).add(request.body)
        assert list(deltas.values()) == list(range(1, 21)) and list(deltas) == sorted(deltas)
        assert all(len(different) == 1 for different in bodies.values())

    def test_what_waits_outlives_the_server(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        with Endpoint() as endpoint:
            port = endpoint.port
        trigger = {"event": V1 + "written", "ref": "a/{b}", "url": f"http://127.0.0.1:{port}/"}
        with Served(tmp_path_factory.mktemp("waiting"), {"t": trigger}) as served:
            tree = Tree(served.program.address, "demo-waiting")
            for number in (1, 2, 3):
                tree.put("a/x", number)
            tree.close()
            assert served.trigger("t")["pending"] == 3
            served.restart()
            until(lambda: served.trigger("t")["pending"] == 3, lambda: served.trigger("t"))
            with Endpoint(port=port) as again:
                served.settled("t")
                changes = [(json.loads(r.body)["data"], json.loads(r.body)["delta"]) for r in again.all()]
                assert changes == [(None, 1), (1, 2), (2, 3)]


# MARK: Ways to write


class TestWays:
    def test_rest(self, namespace: Namespace) -> None:
        namespace.trigger()
        tree = namespace.tree
        assert tree.send("PUT", PLACE, {"n": 1})[0] == 200
        assert tree.send("PATCH", PLACE, {"m": 2})[0] == 200
        status, answer = tree.send("POST", "rooms/a/messages", "pushed")
        assert status == 200
        assert tree.send("DELETE", PLACE)[0] == 200
        assert tree.send("PUT", "rooms/a/messages/n", {".sv": "timestamp"})[0] == 200
        events = namespace.events()
        assert [place for _, place, _, _ in events if place == PLACE] == [PLACE] * 3
        by_place = {place: (before, after) for _, place, before, after in events}
        assert by_place[f"rooms/a/messages/{answer['name']}"] == (None, "pushed")
        # What is stored, not the mark for it.
        assert by_place["rooms/a/messages/n"] == (None, tree.get("rooms/a/messages/n"))
        assert by_place[PLACE] == ({"m": 2, "n": 1}, None)

    def test_sockets(self, namespace: Namespace) -> None:
        namespace.tree.rules({".read": True, ".write": True})
        namespace.trigger()
        with Wire(namespace.served.program.address, namespace.name) as wire:
            wire.ok("p", {"p": PLACE, "d": {"n": 1}})
            wire.ok("auth", {"cred": token("eva")})
            wire.ok("m", {"p": PLACE, "d": {"m": 2}})
            refused = wire.call("p", {"p": PLACE, "d": 3, "h": "not the hash"})
            assert refused["s"] == "datastale"
        assert namespace.events() == [("written", PLACE, None, {"n": 1}), ("written", PLACE, {"n": 1}, {"m": 2})]
        assert namespace.authors() == [("unauthenticated", None), ("app_user", "eva")]

    @pytest.mark.parametrize("author", ["nobody", "user", "admin"])
    def test_what_is_written_when_a_client_leaves(self, namespace: Namespace, author: str) -> None:
        """With the rights, and as the author, of the session at its end."""
        namespace.tree.rules({".read": True, ".write": True})
        namespace.trigger()
        wire = Wire(namespace.served.program.address, namespace.name)
        if author == "user":
            wire.ok("auth", {"cred": token("eva")})
        elif author == "admin":
            wire.ok("gauth", {"cred": "owner"})
        wire.ok("o", {"p": PLACE, "d": "left"})
        wire.ok("om", {"p": "rooms/a/messages", "d": {"n": 1, "k": 2}})
        wire.ok("o", {"p": "rooms/b/messages/x", "d": "cancelled"})
        wire.ok("oc", {"p": "rooms/b/messages/x", "d": None})
        assert namespace.requests() == []
        wire.close()
        namespace.endpoint.wait(3)
        assert sorted(namespace.events()) == [
            ("written", "rooms/a/messages/k", None, 2),
            ("written", PLACE, None, "left"),
            ("written", "rooms/a/messages/n", None, 1),
        ]
        expected = {"nobody": ("unauthenticated", None), "user": ("app_user", "eva"), "admin": ("admin", None)}
        assert set(namespace.authors()) == {expected[author]}

    def test_firebase_admin(self, namespace: Namespace, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FIREBASE_DATABASE_EMULATOR_HOST", namespace.served.program.address)
        options = {"databaseURL": f"https://{namespace.name}.firebaseio.com"}
        app = firebase_admin.initialize_app(None, options, name=namespace.name)
        try:
            namespace.trigger()
            place = db.reference(PLACE, app)
            place.set({"n": 1})
            place.update({"n": 2, "m": 1})
            place.child("n").transaction(lambda value: value + 1)
            pushed = db.reference("rooms/a/messages", app).push("x")
            place.delete()
            events = namespace.events()
        finally:
            firebase_admin.delete_app(app)
        assert [(before, after) for _, at, before, after in events if at == PLACE] == [
            (None, {"n": 1}),
            ({"n": 1}, {"m": 1, "n": 2}),
            ({"m": 1, "n": 2}, {"n": 3}),
            ({"m": 1, "n": 3}, None),
        ]
        assert ("written", f"rooms/a/messages/{pushed.key}", None, "x") in events
        assert set(namespace.authors()) == {("admin", None)}
