"""Triggers from outside: an endpoint that records what it is sent, the events in it, servers with triggers, and
functions under Google's `functions-framework`.
"""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import os
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from google.events.cloud.firestore_v1 import DocumentEventData
from google.protobuf import json_format

from support.patience import PATIENCE
from support.program import Program, environment_of_a_child
from support.servers import free_port

#: What no wait needs, on a busy machine either.
WAIT_SECONDS = float(os.environ.get("HEARTH_TEST_WAIT_SECONDS", "60"))
V1 = "google.cloud.firestore.document.v1."
LEGACY = "providers/cloud.firestore/eventTypes/document."

Result = TypeVar("Result")


def until(condition: Callable[[], Result], what: object = "", seconds: float = WAIT_SECONDS) -> Result:
    """The condition's first true result."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.0f} s: {what() if callable(what) else what}")
        time.sleep(0.01)


@dataclass
class Request:
    """One request as it came in. Header names are in lower case; their values are the bytes that were sent."""

    path: str
    headers: dict[str, bytes]
    body: bytes
    time: float

    def header(self, name: str) -> str:
        return self.headers[name].decode()

    @property
    def attempt(self) -> int:
        return int(self.headers.get("x-hearth-attempt", b"1"))

    @property
    def event(self) -> Event:
        return Event.of(self)


@dataclass
class Event:
    """The event in a request, whatever its format: attributes, and the data in the JSON form of protobuf."""

    attributes: dict[str, str]
    data: dict[str, Any]

    @staticmethod
    def of(request: Request, is_base64: bool = False) -> Event:
        kind = request.header("content-type")
        if kind.startswith("application/cloudevents+json"):
            attributes = json.loads(request.body)
            if "data" in attributes:
                return Event(attributes, attributes.pop("data"))
            return Event(attributes, Event.decoded(base64.b64decode(attributes.pop("data_base64"), validate=True)))
        if "ce-id" in request.headers:
            attributes = {k[3:]: v.decode() for k, v in request.headers.items() if k.startswith("ce-")}
            if kind == "application/json":
                return Event(attributes, json.loads(request.body))
            body = base64.b64decode(request.body, validate=True) if is_base64 else request.body
            return Event(attributes, Event.decoded(body))
        legacy = json.loads(request.body)
        context = legacy["context"]
        resource = context["resource"]
        name = resource if isinstance(resource, str) else resource["name"]
        attributes = {
            "id": context["eventId"],
            "type": context["eventType"],
            "time": context["timestamp"],
            "document": name.split("/documents/", 1)[1],
        }
        return Event(attributes, legacy["data"])

    @staticmethod
    def decoded(body: bytes) -> dict[str, Any]:
        return json.loads(json_format.MessageToJson(DocumentEventData.pb(DocumentEventData.deserialize(body))))

    @property
    def id(self) -> str:
        return self.attributes["id"]

    @property
    def kind(self) -> str:
        return self.attributes["type"].removeprefix(V1).removeprefix(LEGACY)

    @property
    def document(self) -> str:
        return self.attributes["document"]

    @property
    def before(self) -> dict[str, Any] | None:
        return fields(self.data.get("oldValue"))

    @property
    def after(self) -> dict[str, Any] | None:
        return fields(self.data.get("value"))

    @property
    def mask(self) -> list[str]:
        return self.data.get("updateMask", {}).get("fieldPaths", [])


def fields(document: dict[str, Any] | None) -> dict[str, Any] | None:
    if document is None:
        return None
    return {name: plain(value) for name, value in document.get("fields", {}).items()}


def plain(value: dict[str, Any]) -> Any:
    ((kind, content),) = value.items()
    match kind:
        case "integerValue":
            return int(content)
        case "mapValue":
            return fields(content)
        case "arrayValue":
            return [plain(element) for element in content.get("values", [])]
        case "nullValue":
            return None
    return content


@dataclass
class Reply:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256
    # A test that is over doesn't wait for what it holds.
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """A server that was killed in a request is no fault of the endpoint."""


class Endpoint:
    """Records requests, and answers them as `answer` says, which may be exchanged at any time.

    An answer of None closes the connection without a byte: the event was processed, but its sender can't know.
    """

    def __init__(self, answer: Callable[[Request], Reply | None] | None = None, port: int = 0) -> None:
        self.answer = answer or (lambda _: Reply())
        self.requests: list[Request] = []
        self.lock = threading.Lock()
        #: Connections that are open.
        self.connections = 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self) -> None:
                with owner.lock:
                    owner.connections += 1
                try:
                    super().handle()
                finally:
                    with owner.lock:
                        owner.connections -= 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value.encode("latin-1") for name, value in self.headers.items()}
                request = Request(self.path, headers, body, time.monotonic())
                with owner.lock:
                    owner.requests.append(request)
                reply = owner.answer(request)
                if reply is None:
                    self.close_connection = True
                    return
                self.send_response(reply.status)
                for name, value in {"content-length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = _Server(("127.0.0.1", port), Handler)
        self.port = int(self.server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}/"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def all(self, path: str | None = None) -> list[Request]:
        with self.lock:
            return [r for r in self.requests if path is None or r.path == path]

    def events(self, path: str | None = None) -> list[Event]:
        return [request.event for request in self.all(path)]

    def wait(self, count: int, path: str | None = None, seconds: float = WAIT_SECONDS) -> list[Request]:
        """The requests when there are `count`."""
        until(lambda: len(self.all(path)) >= count, lambda: f"{count} requests, {len(self.all(path))} came", seconds)
        return self.all(path)

    def clear(self) -> None:
        with self.lock:
            self.requests.clear()


class Served:
    """A program with triggers in `hearth.json`, and its requests."""

    def __init__(self, folder: Path, triggers: dict[str, Any] | None = None, *options: str, **settings: Any) -> None:
        self.folder = folder
        self.options = options
        self.settings = settings
        self.log = ""
        self.write(triggers)
        self.program = Program(folder, *options)

    def write(self, triggers: dict[str, Any] | None, content: str | None = None) -> None:
        """Puts `hearth.json` in its folder all at once."""
        new = self.folder / "hearth.json.new"
        new.write_text(content if content is not None else json.dumps({**self.settings, "triggers": triggers or {}}))
        new.rename(self.folder / "hearth.json")

    def restart(self, *, kills: bool = True) -> str:
        """Ends the server as asked for, and starts another on the same folder; returns the first one's log."""
        log = self.program.kill() if kills else self.program.terminate()[1]
        self.start()
        return log

    def start(self) -> None:
        """After its end."""
        self.program = Program(self.folder, *self.options)

    def close(self) -> str:
        if self.program.process.poll() is not None:
            return ""
        return self.program.kill()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Requests

    def ask(
        self, method: str, path: str, body: object = None, token: str | None = "owner", **headers: str
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        sent = {**headers, **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if content else None
        finally:
            connection.close()

    def good(self, method: str, path: str, body: object = None, **more: Any) -> Any:
        status, answer = self.ask(method, path, body, **more)
        assert status == 200, (method, path, status, answer)
        return answer

    def put(self, path: str, *, project: str = "demo-hearth", database: str = "(default)", **values: Any) -> None:
        self.commit(update(path, project=project, database=database, **values), project=project, database=database)

    def delete(self, path: str) -> None:
        self.commit(delete(path))

    def commit(self, *writes: Any, project: str = "demo-hearth", database: str = "(default)") -> Any:
        root = f"/v1/projects/{project}/databases/{database}/documents"
        return self.good("POST", f"{root}:commit", {"writes": list(writes)})

    def trigger(self, name: str) -> dict[str, Any]:
        return self.good("GET", f"/hearth/v1/triggers/{name}")

    def settled(self, *names: str, seconds: float = WAIT_SECONDS) -> None:
        """Waits until triggers have no events that are not settled."""
        for name in names:
            until(lambda name=name: self.trigger(name)["pending"] == 0, lambda name=name: self.trigger(name), seconds)

    def metric(self, start: str) -> float:
        """The value of the series whose name and labels are given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.program.port, timeout=PATIENCE)
        connection.request("GET", "/metrics")
        content = connection.getresponse().read().decode()
        connection.close()
        found = [line.rsplit(" ", 1)[1] for line in content.splitlines() if line.rsplit(" ", 1)[0] == start]
        assert len(found) == 1, (start, [line for line in content.splitlines() if "trigger" in line])
        return float(found[0])


# Writes, in the JSON form of protobuf


def name_of(path: str, project: str = "demo-hearth", database: str = "(default)") -> str:
    return f"projects/{project}/databases/{database}/documents/{path}"


def value(of: Any) -> dict[str, Any]:
    match of:
        case None:
            return {"nullValue": None}
        case bool():
            return {"booleanValue": of}
        case int():
            return {"integerValue": str(of)}
        case float():
            return {"doubleValue": of}
        case str():
            return {"stringValue": of}
        case dict():
            return {"mapValue": {"fields": {k: value(v) for k, v in of.items()}}}
        case list():
            return {"arrayValue": {"values": [value(v) for v in of]}}
    raise AssertionError(of)


def update(path: str, *, project: str = "demo-hearth", database: str = "(default)", **values: Any) -> dict[str, Any]:
    made = {"name": name_of(path, project, database), "fields": {k: value(v) for k, v in values.items()}}
    return {"update": made}


def delete(path: str) -> dict[str, Any]:
    return {"delete": name_of(path)}


def definition(url: str, document: str = "{all=**}", kind: str = "written", **more: Any) -> dict[str, Any]:
    """The definition of a trigger."""
    return {"event": kind if "/" in kind else V1 + kind, "document": document, "url": url, **more}


# Functions


class Functions:
    """Functions of a source file under `functions-framework`: each in a process of its own, or several in one."""

    def __init__(self, folder: Path, source: str, environment: dict[str, str] | None = None) -> None:
        self.source = folder / "main.py"
        self.source.write_text(source)
        self.report = folder / "report"
        self.report.touch()
        self.folder = folder
        # What they write is in the report; a function that names the emulator must not find it in the tests' own.
        self.environment = environment_of_a_child(
            {
                "REPORT": str(self.report),
                "GOOGLE_CLOUD_PROJECT": "demo-hearth",
                "FIRESTORE_EMULATOR_HOST": "127.0.0.1:1",
                **(environment or {}),
            }
        )
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ports: dict[str, int] = {}
        self.urls: dict[str, str] = {}

    def start(self, target: str, signature: str = "cloudevent") -> None:
        """As people start it: a process for one function."""
        framework = Path(sys.executable).parent / "functions-framework"
        options = ["--target", target, "--source", str(self.source), "--signature-type", signature]
        port = free_port()
        self._run([str(framework), *options, "--host", "127.0.0.1", "--port", str(port)], self.folder, target, port)
        self.urls[target] = f"http://127.0.0.1:{port}/"

    def start_together(self, targets: Iterable[str]) -> None:
        """One process for all. A target may have its signature behind a colon."""
        port = free_port()
        command = [sys.executable, "-m", "support.function_host", str(self.source), str(port), *targets]
        self._run(command, Path(__file__).parents[1], "together", port)
        for target in targets:
            name = target.partition(":")[0]
            self.urls[name] = f"http://127.0.0.1:{port}/{name}/"

    def _run(self, command: list[str], folder: Path, name: str, port: int) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(command, env=self.environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        self.processes.append(started)
        self.ports[name] = port

    def wait(self) -> None:
        """Until all of them accept requests."""
        for target, port in self.ports.items():
            until(lambda port=port: answers(port), lambda target=target: self.log(target))

    def url(self, target: str) -> str:
        return self.urls[target]

    def log(self, target: str) -> str:
        name = target if target in self.ports else "together"
        return (self.folder / f"{name}.log").read_text()[-4000:]

    def reports(self, target: str | None = None) -> list[dict[str, Any]]:
        """What the functions have reported, in order."""
        content = self.report.read_text()
        # The last line may be half written.
        lines = content[: content.rfind("\n") + 1].splitlines()
        all_of_them = [json.loads(line) for line in lines]
        return [report for report in all_of_them if target is None or report["function"] == target]

    def wait_for(self, count: int, target: str) -> list[dict[str, Any]]:
        until(
            lambda: len(self.reports(target)) >= count, lambda: f"{target}: {self.reports(target)}, {self.log(target)}"
        )
        return self.reports(target)

    def clear(self) -> None:
        os.truncate(self.report, 0)

    def close(self) -> None:
        for started in self.processes:
            started.terminate()
        for started in self.processes:
            try:
                started.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def answers(port: int) -> bool:
    """Whether a function is served. What is sent is no event."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/robots.txt")
        connection.getresponse().read()
        return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def functions(
    folder: Path, source: str, targets: Iterable[str], *, environment: dict[str, str] | None = None
) -> Iterator[Functions]:
    """Functions in one process."""
    made = Functions(folder, source, environment)
    try:
        made.start_together(targets)
        made.wait()
        yield made
    finally:
        made.close()
