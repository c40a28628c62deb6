"""Triggers as Firebase's tools register them, here and in Google's emulator, side by side: both are registered the same
functions, get the same commits, and must send the same events, but for what the emulator does wrong.

The requests are those of `functionsEmulator.ts` of firebase-tools: `PUT …/triggers/KEY` for functions of the first
generation, `POST …/eventarcTrigger?eventarcTriggerId=KEY` for those of the second.
"""

from __future__ import annotations

import http.client
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.events import LEGACY, V1, Endpoint, Event, Reply, Request, Served, name_of, until, update
from support.patience import PATIENCE
from support.program import BINARY, program
from support.servers import Unavailable, emulator_command, free_port, running

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PROJECT = "demo-registered"
FENCE = "fence/last"

#: Attributes that must be the same.
SAME = (
    "specversion",
    "type",
    "subject",
    "datacontenttype",
    "dataschema",
    "project",
    "database",
    "namespace",
    "location",
    "document",
)
KINDS = ("created", "updated", "deleted", "written")
LEGACY_KINDS = ("create", "update", "delete", "write")


def key(name: str, generation: int = 0) -> str:
    return f"us-central1-{name}-{generation}"


class Side:
    """A server and the functions emulator of Firebase's tools, as far as it records what comes."""

    def __init__(self, address: str, functions: Endpoint) -> None:
        self.host, port = address.rsplit(":", 1)
        self.port = int(port)
        self.functions = functions
        self.numbers = itertools.count()

    def send(
        self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            content = body if isinstance(body, str) or body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    # As firebase-tools does

    def first_generation(self, name: str, kind: str, document: str, database: str = "(default)") -> tuple[int, bytes]:
        resource = f"projects/{PROJECT}/databases/{database}/documents/{document}"
        trigger = {"resource": resource, "eventType": LEGACY + kind, "service": "firestore.googleapis.com"}
        return self.send("PUT", f"/emulator/v1/projects/{PROJECT}/triggers/{key(name)}", {"eventTrigger": trigger})

    def second_generation(
        self,
        name: str,
        kind: str,
        document: str,
        match: str = "PATH_PATTERN",
        database: str = "(default)",
        generation: int = 0,
    ) -> tuple[int, bytes]:
        body = {
            "eventType": V1 + kind,
            "database": database,
            "namespace": "(default)",
            "document": {"value": document, "matchType": match},
        }
        path = f"/emulator/v1/projects/{PROJECT}/eventarcTrigger?eventarcTriggerId={key(name, generation)}"
        return self.send("POST", path, body)

    def register(self) -> None:
        """A trigger of each kind and generation, and the fence."""
        for kind in LEGACY_KINDS:
            status, content = self.first_generation(f"first-{kind}", kind, "{all=**}")
            assert (status, json.loads(content)) == (200, {})
        for kind in KINDS:
            for more in ("", ".withAuthContext"):
                status, content = self.second_generation(kind + more.replace(".", "-"), kind + more, "{all=**}")
                assert status == 200 and json.loads(content)["document"]["value"] == "{all=**}"
        for name, pattern in {
            "one": "users/{u}",
            "deep": "users/{u=**}",
            "star": "users/a/posts/p*t",
            "below": "users/a/**",
        }.items():
            self.second_generation(name, "written", pattern)
        self.second_generation("exact", "written", "users/a", match="EXACT")
        self.second_generation("named", "written", "{all=**}", database="other")
        self.first_generation("first-named", "write", "{all=**}", database="other")

    def commit(self, *writes: Any, database: str = "(default)") -> dict[str, Any]:
        root = f"/v1/projects/{PROJECT}/databases/{database}/documents"
        status, content = self.send(
            "POST", f"{root}:commit", {"writes": list(writes)}, {"Authorization": "Bearer owner"}
        )
        assert status == 200, content
        return json.loads(content)

    def put(self, path: str, database: str = "(default)", **values: Any) -> None:
        self.commit(update(path, project=PROJECT, database=database, **values), database=database)

    def delete(self, path: str) -> None:
        self.commit({"delete": name_of(path, PROJECT)})

    def finish(self) -> None:
        """Waits for all events: the emulator sends one after the other, in the order of commits."""
        self.put(FENCE, n=next(self.numbers))
        expected = {key(name) for name in ("written", "first-write")}
        until(
            lambda: (
                expected
                <= {request.path.rsplit("/", 1)[1] for request in self.functions.all() if document(request) == FENCE}
            )
        )

    def events(self) -> dict[tuple[str, str], list[Any]]:
        """By function and document, in order, in a comparable form."""
        self.finish()
        found: dict[tuple[str, str], list[Any]] = defaultdict(list)
        for request in self.functions.all():
            prefix = f"/functions/projects/{PROJECT}/triggers/"
            assert request.path.startswith(prefix)
            path = document(request)
            if path != FENCE:
                name = request.path.removeprefix(prefix)
                found[name, path].append(comparable(request))
        self.functions.clear()
        return dict(found)


class HearthSide(Side):
    def finish(self) -> None:
        """Until no trigger has an event that is not settled."""

        def pending() -> int:
            _, content = self.send("GET", "/hearth/v1/triggers", None, {"Authorization": "Bearer owner"})
            return sum(trigger["pending"] for trigger in json.loads(content)["triggers"])

        until(lambda: pending() == 0)


def event_of(request: Request) -> Event:
    """The body of a protobuf event is Base64 here."""
    return Event.of(request, is_base64=True)


def document(request: Request) -> str:
    return event_of(request).document


def comparable(request: Request) -> Any:
    event = event_of(request)
    data = event.data
    states = {side: (data[side]["name"], data[side].get("fields")) for side in ("value", "oldValue") if side in data}
    times = [
        data[side][name] for side in ("oldValue", "value") if side in data for name in ("createTime", "updateTime")
    ]
    # Which of the times are equal, and their order.
    ranks = [sorted(set(times)).index(moment) for moment in times]
    if "ce-id" not in request.headers:
        context = json.loads(request.body)["context"]
        assert set(json.loads(request.body)) == {"data", "context"}
        return request.header("content-type"), states, ranks, context["eventType"], context["resource"]
    attributes = {name: event.attributes.get(name) for name in SAME}
    return request.header("content-type"), states, ranks, attributes


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Side]]:
    """Hearth, and the emulator where it is installed; registered with the same functions."""
    with ExitStack() as open_things:
        functions = open_things.enter_context(Endpoint())
        address = f"127.0.0.1:{functions.port}"
        served = Served(
            tmp_path_factory.mktemp("hearth"), None, "--project", PROJECT, f"--functions_emulator={address}"
        )
        open_things.callback(served.close)
        both: list[Side] = [HearthSide(served.program.address, functions)]
        try:
            theirs = open_things.enter_context(Endpoint())
            port = free_port()
            command = [*emulator_command(port), f"--functions_emulator=127.0.0.1:{theirs.port}"]
            both.append(Side(open_things.enter_context(running(command, port)), theirs))
        except Unavailable as reason:
            print(reason)
        for side in both:
            side.register()
        yield both


def compare(sides: list[Side], without: tuple[str, ...] = ()) -> dict[tuple[str, str], list[Any]]:
    """Hearth's events, which are those of the emulator but for functions that are known to differ."""
    events = [side.events() for side in sides]
    for theirs in events[1:]:

        def kept(all_of_them: dict[tuple[str, str], list[Any]]) -> dict[tuple[str, str], list[Any]]:
            return {of: found for of, found in all_of_them.items() if of[0] not in without}

        assert kept(events[0]) == kept(theirs)
    return events[0]


def names(events: dict[tuple[str, str], list[Any]]) -> set[str]:
    return {name.removeprefix("us-central1-").removesuffix("-0") for name, _ in events}


class TestBeside:
    def test_creation_update_and_deletion(self, sides: list[Side]) -> None:
        for side in sides:
            side.put("cities/rome", n=1, same={"x": [1.5, None, True]})
            side.put("cities/rome", n=2, same={"x": [1.5, None, True]})
            side.delete("cities/rome")
        events = compare(sides)
        counts = {name: len(found) for (name, _), found in events.items()}
        for kind in KINDS:
            for more in ("", "-withAuthContext"):
                assert counts[key(kind + more)] == (3 if kind == "written" else 1)
        for kind in LEGACY_KINDS:
            assert counts[key(f"first-{kind}")] == (3 if kind == "write" else 1)
        assert len(counts) == 12

    def test_several_writes_of_one_commit(self, sides: list[Side]) -> None:
        def write(path: str, **values: Any) -> Any:
            return update(path, project=PROJECT, **values)

        for side in sides:
            side.put("cities/renewed", n=1)
            side.put("cities/changed", n=1)
            side.commit(
                write("cities/changed", n=2),
                write("cities/changed", n=3),
                write("cities/new", n=1),
                write("cities/new", n=2),
                {"delete": name_of("cities/renewed", PROJECT)},
                write("cities/renewed", n=1),
            )
        events = compare(sides)
        assert len(events[key("updated"), "cities/renewed"]) == 1
        assert len(events[key("created"), "cities/new"]) == 1

    def test_patterns(self, sides: list[Side]) -> None:
        for side in sides:
            for path in ("users/a", "users/b", "users/a/posts/post", "users/a/posts/pt", "users/a/posts/other", "x/y"):
                side.put(path, n=1)
        events = compare(sides)
        found = defaultdict(set)
        for name, path in events:
            found[name].add(path)
        assert found[key("exact")] == {"users/a"}
        assert found[key("one")] == {"users/a", "users/b"}
        assert found[key("star")] == {"users/a/posts/post", "users/a/posts/pt"}
        assert found[key("deep")] - found[key("below")] == {"users/b"}

    def test_names_that_are_not_ascii(self, sides: list[Side]) -> None:
        for side in sides:
            side.put("cities/Zürich ß", größe=1)
            side.put("users/日本", n=1)
        events = compare(sides)
        assert (key("one"), "users/日本") in events

    def test_named_databases(self, sides: list[Side]) -> None:
        """The emulator sends no events of the first generation for them."""
        for side in sides:
            side.put("cities/rome", database="other", n=1)
        events = compare(sides, without=(key("first-named"),))
        assert names(events) == {"named", "first-named"}

    def test_what_the_emulator_does_wrong(self, sides: list[Side]) -> None:
        """It sends events of the second generation for commits that change nothing, Hearth none."""
        for side in sides:
            side.put("cities/same", n=1)
            side.events()
            side.put("cities/same", n=1)
            side.delete("cities/missing")
            side.commit({"verify": name_of("cities/same", PROJECT), "currentDocument": {"exists": True}})
            side.commit(update("cities/flash", project=PROJECT, n=1), {"delete": name_of("cities/flash", PROJECT)})
        events = [received(side) for side in sides]
        assert events[0] == []
        for theirs in events[1:]:
            # So that it is noticed when the emulator is mended.
            assert theirs
            assert {name.removeprefix("us-central1-").split("-")[0] for name, _ in theirs} <= {
                "created",
                "updated",
                "written",
            }

    def test_clearing(self, sides: list[Side]) -> None:
        """It is made for emptying between tests: the emulator sends deletions, Hearth nothing."""
        for side in sides:
            side.put("cities/cleared", n=1)
            side.events()
            status, _ = side.send("DELETE", f"/emulator/v1/projects/{PROJECT}/databases/(default)/documents")
            assert status == 200
        found = [received(side) for side in sides]
        assert found[0] == []
        for theirs in found[1:]:
            assert (key("deleted"), "cities/cleared") in theirs
        # Triggers are still there.
        wanted = (key("created"), "cities/after")
        for side in sides:
            side.put("cities/after", n=1)
            # The emulator may send what it has of the clearing after the event that the end is known by.
            later: list[tuple[str, str]] = []
            until(lambda side=side, later=later: later.extend(received(side)) or wanted in later)


def received(side: Side) -> list[tuple[str, str]]:
    """Function and document of each event, also of those that have no data."""
    side.finish()
    found = []
    for request in side.functions.all():
        path = request.headers["ce-document"].decode() if "ce-id" in request.headers else document(request)
        if path != FENCE:
            found.append((request.path.rsplit("/", 1)[1], path))
    side.functions.clear()
    return found


class TestAnswers:
    """To what registers, in both servers."""

    def test_the_same_key_replaces(self, sides: list[Side]) -> None:
        for side in sides:
            for document_of in ("other/{x}", "replaced/{x}"):
                assert side.second_generation("replaced", "written", document_of)[0] == 200
            side.put("other/a", n=1)
            side.put("replaced/a", n=1)
        events = compare(sides)
        assert [path for name, path in events if name == key("replaced")] == ["replaced/a"]

    def test_there_is_no_other_method(self, sides: list[Side]) -> None:
        for side in sides:
            for method in ("GET", "DELETE", "POST"):
                path = f"/emulator/v1/projects/{PROJECT}/triggers/{key('first-write')}"
                assert side.send(method, path, {} if method == "POST" else None)[0] == 404

    def test_what_is_wrong(self, sides: list[Side]) -> None:
        """The emulator answers an unknown type with 500; Hearth says what is wrong."""
        for side in sides:
            path = f"/emulator/v1/projects/{PROJECT}/triggers/{key('wrong')}"
            assert side.send("PUT", path, '{"eventTrigger": 7}')[0] == 400
            assert side.send("PUT", path, "{")[0] == 400
        side = sides[0]
        wrong: list[tuple[tuple[int, bytes], str]] = [
            (side.first_generation("wrong", "changed", "a/{b}"), "eventType"),
            (side.first_generation("wrong", "write", "a/{b"), "resource"),
            (side.second_generation("wrong", "changed", "a/{b}"), "eventType"),
            (side.second_generation("wrong", "written", "a/*b*"), "document.value"),
            (side.second_generation("wrong", "written", "{a=**}/{b=**}"), "document.value"),
            (side.second_generation("wrong", "written", "a//b"), "document.value"),
            (side.second_generation("wrong", "written", "a/{b}", match="ROUGHLY"), "document.matchType"),
            (
                side.send(
                    "POST",
                    f"/emulator/v1/projects/{PROJECT}/eventarcTrigger",
                    {"eventType": V1 + "written", "document": {"value": "a/{b}"}},
                ),
                "eventarcTriggerId",
            ),
        ]
        for (status, content), member in wrong:
            error = json.loads(content)["error"]
            assert (status, error["status"]) == (400, "INVALID_ARGUMENT")
            assert member in error["message"], error

    def test_bodies_without_a_content_type(self, sides: list[Side]) -> None:
        for side in sides:
            connection = http.client.HTTPConnection(side.host, side.port, timeout=PATIENCE)
            body = {
                "eventType": V1 + "written",
                "database": "(default)",
                "namespace": "(default)",
                "document": {"value": "bare/{x}", "matchType": "PATH_PATTERN"},
            }
            connection.request(
                "POST",
                f"/emulator/v1/projects/{PROJECT}/eventarcTrigger?eventarcTriggerId={key('bare')}",
                json.dumps(body),
            )
            answer = connection.getresponse()
            assert (answer.status, json.loads(answer.read())) == (200, body)
            connection.close()


# MARK: Hearth alone


class TestFunctionsEmulator:
    """What becomes of events at an address that Firebase's functions emulator has."""

    def start(self, folder: Path, endpoint: Endpoint, *options: str) -> tuple[Served, HearthSide]:
        served = Served(folder, None, "--project", PROJECT, *options)
        return served, HearthSide(served.program.address, endpoint)

    def test_a_function_that_fails_is_called_again(self, tmp_path: Path) -> None:
        with Endpoint(lambda request: Reply(500 if request.attempt < 3 else 200)) as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{endpoint.port}")
            with served:
                side.second_generation("f", "written", "a/{b}")
                side.put("a/b", n=1)
                requests = endpoint.wait(3)
                assert [request.attempt for request in requests] == [1, 2, 3]
                assert len({request.header("ce-id") for request in requests}) == 1

    def test_one_that_always_fails_is_given_up(self, tmp_path: Path) -> None:
        """After five more attempts, so that a developer is not called until tomorrow."""
        with Endpoint(lambda _: Reply(500)) as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{endpoint.port}")
            with served:
                side.second_generation("f", "written", "a/{b}")
                side.put("a/b", n=1)
                side.finish()
                requests = endpoint.all()
                assert [request.attempt for request in requests] == [1, 2, 3, 4, 5, 6]
                gaps = [later.time - before.time for before, later in zip(requests, requests[1:], strict=False)]
                assert all(gap >= 0.2 * 2**number * 0.8 - 0.01 for number, gap in enumerate(gaps)), gaps

    def test_a_function_that_is_not_known_any_more(self, tmp_path: Path) -> None:
        """Firebase's tools unregister nothing: a reload replaces a function, and one that is gone is answered with 404.
        One that is new may be, too, for a moment."""

        seen: list[str] = []

        def answer(request: Request) -> Reply:
            seen.append(request.path[-3:])
            is_new = seen.count("f-1") == 1 and request.path.endswith("f-1")
            return Reply(404 if is_new or request.path.endswith("gone-0") else 200)

        with Endpoint(answer) as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{endpoint.port}")
            with served:
                for name, generation in (("gone", 0), ("f", 0), ("f", 1)):
                    side.second_generation(name, "written", "a/{b}", generation=generation)
                side.put("a/b", n=1)
                until(lambda: len(served.good("GET", "/hearth/v1/triggers")["triggers"]) == 1)
                side.put("a/b", n=2)

                def count(function: str) -> int:
                    return sum(request.path.endswith(function) for request in endpoint.all())

                until(lambda: count("f-1") == 3)
                assert 2 <= count("gone-0") == len(endpoint.all()) - 3 <= 5

    def test_they_live_as_long_as_the_process(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{free_port()}")
            with served:
                side.second_generation("f", "written", "a/{b}")
                side.put("a/b", n=1)
                listed = served.good("GET", "/hearth/v1/triggers")["triggers"]
                assert [(trigger["source"], trigger["pending"]) for trigger in listed] == [("emulator", 1)]
                served.restart()
                assert served.good("GET", "/hearth/v1/triggers")["triggers"] == []

    def test_without_an_address_registration_has_no_effect(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint:
            served, side = self.start(tmp_path, endpoint)
            with served:
                assert side.second_generation("f", "written", "a/{b}")[0] == 200
                assert side.first_generation("f", "write", "a/{b}") == (200, b"{}")
                assert served.good("GET", "/hearth/v1/triggers")["triggers"] == []

    @pytest.mark.parametrize("way", ["option", "database options", "environment", "hearth.json", "firebase.json"])
    def test_where_the_address_is_named(self, tmp_path: Path, way: str) -> None:
        with Endpoint() as endpoint:
            address, options, environment = f"127.0.0.1:{endpoint.port}", [], {}
            match way:
                case "option":
                    options = [f"--functions_emulator={address}"]
                case "database options":
                    options = ["--functions_emulator_host=127.0.0.1", f"--functions_emulator_port={endpoint.port}"]
                case "environment":
                    environment = {"HEARTH_FUNCTIONS_EMULATOR": address}
                case "hearth.json":
                    (tmp_path / "hearth.json").write_text(json.dumps({"functionsEmulator": address}))
                case "firebase.json":
                    (tmp_path / "firebase.json").write_text(
                        json.dumps({"emulators": {"functions": {"port": endpoint.port}}})
                    )
            with program(tmp_path, "--memory", "--project", PROJECT, *options, environment=environment) as hearth:
                side = HearthSide(hearth.address, endpoint)
                side.second_generation("f", "written", "a/{b}")
                side.put("a/b", n=1)
                (request,) = endpoint.wait(1)
                assert request.path == f"/functions/projects/{PROJECT}/triggers/{key('f')}"

    def test_not_in_production(self, tmp_path: Path) -> None:
        with Endpoint() as endpoint:
            address = f"127.0.0.1:{endpoint.port}"
            served, side = self.start(tmp_path, endpoint, "--no-emulator", "--functions-emulator", address)
            with served:
                assert side.second_generation("f", "written", "a/{b}")[0] == 404
                assert side.first_generation("f", "write", "a/{b}")[0] == 404

    def test_functions_of_the_realtime_database(self, tmp_path: Path) -> None:
        owner = {"Authorization": "Bearer owner"}
        with Endpoint() as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{endpoint.port}")
            with served:
                first = {
                    "name": f"projects/{PROJECT}/locations/_/functions/{key('f')}",
                    "path": "/posts/{id}",
                    "event": "providers/google.firebase.database/eventTypes/ref.create",
                    "topic": f"projects/{PROJECT}/topics/{key('f')}",
                }
                path = f"/.settings/functionTriggers.json?ns={PROJECT}"
                status, content = side.send("POST", path, first, owner)
                assert (status, json.loads(content)) == (200, {"status": "ok"})
                status, content = side.send("GET", path, None, owner)
                assert (status, json.loads(content)) == (200, [first])
                second = {
                    "name": f"projects/{PROJECT}/locations/us-central1/triggers/{key('g')}",
                    "path": "/posts/{id}",
                    "event": "google.firebase.database.ref.v1.written",
                    "namespacePattern": "*",
                    "topic": f"projects/{PROJECT}/topics/{key('g')}",
                }
                status, content = side.send("POST", "/.settings/functionTriggers.json", second, owner)
                assert (status, json.loads(content)) == (200, {"status": "ok"})
                status, content = side.send("PUT", path, [], owner)
                assert (status, json.loads(content)) == (200, {"status": "ok"})
                assert json.loads(side.send("GET", path, None, owner)[1]) == []

    @pytest.mark.parametrize("generation", [1, 2])
    def test_events_of_the_realtime_database(self, tmp_path: Path, generation: int) -> None:
        """In the form that the functions emulator takes, at its address for the trigger's key."""
        owner = {"Authorization": "Bearer owner"}
        folder, event, more = {
            1: ("locations/_/functions", "providers/google.firebase.database/eventTypes/ref.create", {}),
            2: ("locations/us-central1/triggers", "google.firebase.database.ref.v1.created", {"namespacePattern": "*"}),
        }[generation]
        body = {
            "name": f"projects/{PROJECT}/{folder}/{key('f')}",
            "path": "/posts/{id}",
            "event": event,
            "topic": f"projects/{PROJECT}/topics/{key('f')}",
            **more,
        }
        with Endpoint() as endpoint:
            served, side = self.start(tmp_path, endpoint, "--functions-emulator", f"127.0.0.1:{endpoint.port}")
            with served:
                query = "" if generation == 2 else f"?ns={PROJECT}"
                assert side.send("POST", f"/.settings/functionTriggers.json{query}", body, owner)[0] == 200
                assert side.send("PUT", f"/posts/a/title.json?ns={PROJECT}", json.dumps("hello"), owner)[0] == 200
                (request,) = endpoint.wait(1)
                assert request.path == f"/functions/projects/{PROJECT}/triggers/{key('f')}"
                assert request.header("content-type") == "application/json"
                content = json.loads(request.body)
                change = {"data": None, "delta": {"title": "hello"}}
                if generation == 1:
                    assert content["data"] == change
                    assert (content["eventType"], content["params"]) == (event, {"id": "a"})
                    assert content["resource"] == f"projects/_/instances/{PROJECT}/refs/posts/a"
                    assert (content["domain"], content["auth"]) == ("firebaseio.com", {"admin": True})
                else:
                    assert {name: content[name] for name in ("data", "delta")} == change
                    assert request.header("ce-type") == event
                    assert (request.header("ce-ref"), request.header("ce-instance")) == ("posts/a", PROJECT)
