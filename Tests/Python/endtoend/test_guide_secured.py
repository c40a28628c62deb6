"""The guide to functions with a secured server, run: configuration, files and functions, as they are on the page.

Only ports are exchanged for free ones, and the server is reached at 127.0.0.1 alone. The certificate is for localhost, and trusted as the page says.
"""

from __future__ import annotations

import datetime
import http.client
import json
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from support.events import Functions, until, update
from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = Path(__file__).parents[3] / "docs/guide/triggers-secured.md"
ADMINISTRATOR = "a" * 32


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "server.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(*form))


class Secured:
    """The page's server, and its two functions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        certificate(folder)
        secrets, *commands = blocks("sh")
        subprocess.run(["sh", "-ec", secrets], cwd=folder, check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL)
        configuration, placeholder = blocks("json")
        (folder / "placeholder.json").write_text(placeholder)
        (folder / "administrator.secret").write_text(ADMINISTRATOR)
        self.settings = json.loads(configuration)
        assert self.settings.pop("host") == "*"
        # For the test itself: the functions' own may not see triggers.
        self.settings["auth"]["credentials"].append({"name": "test", "secretFile": "administrator.secret"})
        self.write()
        self.program = Program(folder)
        self.functions = [
            self.start(source, command) for source, command in zip(blocks("python"), commands, strict=True)
        ]
        for functions, trigger in zip(self.functions, self.settings["triggers"].values(), strict=True):
            functions.wait()
            (trigger["url"],) = functions.urls.values()
        self.write()
        urls = {trigger["url"] for trigger in self.settings["triggers"].values()}
        until(lambda: {t.get("url") for t in self.ask("GET", "/hearth/v1/triggers")[1]["triggers"]} == urls)

    def write(self) -> None:
        new = self.folder / "hearth.json.new"
        new.write_text(json.dumps(self.settings))
        new.rename(self.folder / "hearth.json")

    def start(self, source: str, command: str) -> Functions:
        """With exactly the variables of the page, and those that trust the certificate."""
        exports = " ".join(re.findall(r"^export (.*)$", command, re.MULTILINE))
        exports = exports.replace("hearth.example:8080", f"localhost:{self.program.port}")
        variables = dict(part.split("=", 1) for part in exports.replace("$PWD", str(self.folder)).split())
        found = re.search(r"functions-framework --target (\w+) --signature-type cloudevent --host 127.0.0.1 ", command)
        assert found
        (self.folder / found[1]).mkdir()
        functions = Functions(self.folder / found[1], source)
        unset = {"FIRESTORE_EMULATOR_HOST", "FIREBASE_DATABASE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT"}
        trust = re.findall(r"`([A-Z_]+)=server.pem`", PAGE.read_text())
        functions.environment = {
            **{name: value for name, value in functions.environment.items() if name not in unset},
            **{name: str(self.folder / "server.pem") for name in trust},
            **variables,
        }
        functions.start(found[1])
        return functions

    def ask(self, method: str, path: str, body: Any = None, token: str | None = ADMINISTRATOR) -> tuple[int, Any]:
        context = ssl.create_default_context(cafile=str(self.folder / "server.pem"))
        connection = http.client.HTTPSConnection("localhost", self.program.port, timeout=PATIENCE, context=context)
        try:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def trigger(self, name: str) -> dict[str, Any]:
        return dict(self.ask("GET", f"/hearth/v1/triggers/{name}")[1])

    def settled(self, name: str) -> None:
        until(lambda: self.trigger(name)["pending"] == 0, lambda: (self.trigger(name), self.logs()))

    def logs(self) -> list[str]:
        return [log.read_text()[-3000:] for log in self.folder.glob("*/*.log")]

    def put(self, path: str) -> None:
        root = "/v1/projects/my-app/databases/(default)/documents"
        status, answer = self.ask("POST", f"{root}:commit", {"writes": [update(path, project="my-app", n=1)]})
        assert status == 200, answer

    def close(self) -> None:
        for functions in self.functions:
            functions.close()
        self.program.kill()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    yield made
    made.close()


def test_a_function_writes_to_firestore(secured: Secured) -> None:
    for number in range(5):
        secured.put(f"rooms/red/messages/{number}")
    secured.settled("countMessages")
    status, room = secured.ask("GET", "/v1/projects/my-app/databases/(default)/documents/rooms/red")
    assert (status, room["fields"]) == (200, {"messages": {"integerValue": "5"}}), secured.logs()
    assert secured.trigger("countMessages")["deadLetters"] == 0


def test_a_function_writes_to_the_realtime_database(secured: Secured) -> None:
    for uid in ("ada", "bob", "eve"):
        assert secured.ask("PUT", f"/rooms/red/members/{uid}.json", True)[0] == 200
    assert secured.ask("DELETE", "/rooms/red/members/bob.json")[0] == 200
    secured.settled("countMembers")
    assert secured.ask("GET", "/rooms/red/number.json") == (200, 2), secured.logs()
    # The namespace of an address that names none.
    assert secured.ask("GET", "/rooms/red/number.json?ns=my-app-default-rtdb") == (200, 2)


def test_nobody_else_may_call_a_function(secured: Secured) -> None:
    caller = (secured.folder / "caller.secret").read_text().strip()
    for functions in secured.functions:
        ((target, port),) = functions.ports.items()
        for sent in (None, "Bearer x", caller, f"Bearer {caller}x", "Bearer é"):
            assert call(target, port, sent) == 401
        # So nothing else is wrong with it.
        assert call(target, port, f"Bearer {caller}") == 200
    # The trigger's own secret is another: the failure is seen, and ends when it is mended.
    (secured.folder / "wrong.secret").write_text("b" * 32)
    secured.settings["triggers"]["countMessages"]["secretFile"] = "wrong.secret"
    secured.write()
    until(lambda: secured.trigger("countMessages")["secretFile"] == "wrong.secret")
    secured.put("rooms/blue/messages/1")
    until(lambda: secured.trigger("countMessages")["state"] == "failing")
    assert secured.trigger("countMessages")["lastError"]["status"] == 401
    secured.settings["triggers"]["countMessages"]["secretFile"] = "caller.secret"
    secured.write()
    until(lambda: secured.trigger("countMessages")["secretFile"] == "caller.secret")
    secured.settled("countMessages")


STRANGERS = {
    "count_messages": (
        {
            "ce-type": "google.cloud.firestore.document.v1.created",
            "ce-source": "//firestore.googleapis.com/projects/my-app/databases/(default)",
            "ce-subject": "documents/rooms/a/messages/b",
            "ce-document": "rooms/a/messages/b",
            "ce-project": "my-app",
            "ce-database": "(default)",
            "ce-namespace": "(default)",
            "content-type": "application/protobuf",
        },
        b"\x0a\x00",
    ),
    "count_members": (
        {
            "ce-type": "google.firebase.database.ref.v1.written",
            "ce-source": "//firebasedatabase.googleapis.com/projects/_/locations/us-central1/instances/x",
            "ce-subject": "refs/rooms/a/members/b",
            "ce-ref": "rooms/a/members/b",
            "ce-instance": "x",
            "ce-firebasedatabasehost": "firebaseio.com",
            "content-type": "application/json",
        },
        b'{"data": null, "delta": true}',
    ),
}


def call(target: str, port: int, authorization: str | None) -> int:
    """An event of a stranger, which is whole but for its secret."""
    headers, body = STRANGERS[target]
    headers = {
        **headers,
        "ce-specversion": "1.0",
        "ce-id": "1",
        "ce-time": "2026-11-22T19:17:22.682316Z",
        "ce-location": "us-central1",
        "ce-datacontenttype": headers["content-type"],
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        sent = {} if authorization is None else {"authorization": authorization.encode()}
        connection.request("POST", "/", body, {**headers, **sent})
        return connection.getresponse().status
    finally:
        connection.close()


def test_what_local_development_uses_is_refused(secured: Secured) -> None:
    status, answer = secured.ask("GET", "/v1/projects/my-app/databases/(default)/documents/a/b", token="owner")
    assert status == 401
    assert "local development only" in answer["error"]["message"]
    functions = (secured.folder / "functions.secret").read_text().strip()
    status, answer = secured.ask("GET", "/hearth/v1/triggers", token=functions)
    assert (status, answer["error"]["message"]) == (
        403,
        'The credential "functions" is for the project "my-app" alone.',
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--address", "127.0.0.1:PORT"], "if the server speaks TLS, pass --tls"),
        (["--address", "localhost:PORT", "--tls"], "pass --tls-ca FILE"),
        (["--address", "localhost:PORT", "--tls-ca", "server.pem"], "Pass --credential FILE"),
        (["--address", "localhost:70000"], "with a port from 1 to 65535"),
        (["--address", "localhost:PORT", "--tls-ca", "server.pem", "--credential", "administrator.secret"], ""),
    ],
)
def test_the_command_line_says_what_is_missing(secured: Secured, options: list[str], expected: str) -> None:
    for words in (["triggers", "list"], ["database", "get", "a"], ["export", "copy", "--force"]):
        ended = subprocess.run(
            [BINARY, *words, *[option.replace("PORT", str(secured.program.port)) for option in options]],
            cwd=secured.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment_of_a_child(),
        )
        assert (ended.returncode == 0) == (expected == ""), ended.stderr
        assert expected in ended.stderr


def test_the_command_line_names_tls_that_there_is_not(tmp_path: Path) -> None:
    server = Program(tmp_path, "--memory")
    try:
        ended = subprocess.run(
            [BINARY, "triggers", "list", "--tls", "--address", server.address],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment_of_a_child(),
        )
        assert ended.returncode == 69
        assert "if it doesn't speak TLS, leave out --tls" in ended.stderr
    finally:
        server.kill()


@pytest.mark.parametrize("options", [[], ["--tls"]])
def test_the_command_line_does_not_speak_of_tls_where_nobody_listens(options: list[str]) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        ended = subprocess.run(
            [BINARY, "export", "x", *options, "--address", f"127.0.0.1:{held.getsockname()[1]}"],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env=environment_of_a_child(),
        )
    assert ended.returncode == 69
    assert ended.stderr.strip().endswith("Connection refused"), ended.stderr


def test_the_page_names_what_is_not_set() -> None:
    assert "`FIRESTORE_EMULATOR_HOST` and `FIREBASE_DATABASE_EMULATOR_HOST` must *not* be set" in PAGE.read_text()
    assert not os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
