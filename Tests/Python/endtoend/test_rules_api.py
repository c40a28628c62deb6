"""Rules and indexes by API: the requests of Firebase's tools for `deploy --only firestore`, as their sources send them,
and what is in force afterwards, over restarts and kills."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from google.api_core import exceptions

from endtoend.people import UserClient, service
from endtoend.test_rules_identity import claims, signed
from support.patience import PATIENCE
from support.program import BINARY, Program, assert_sound, program

pytestmark = [
    pytest.mark.emulator_differs("it has no rules management"),
    pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the server's binary"),
]

PROJECT = "p-one"
SECRET = "secret-of-the-administrator-0123456789"
READER = "secret-of-who-may-only-read-0123456789"
TOKEN = "0123456789abcdef0123456789abcdef"
SETTINGS = {
    "emulator": False,
    "project": PROJECT,
    "auth": {
        "keys": [{"id": "1", "secretFile": "token.secret"}],
        "credentials": [
            {"name": "admin", "secretFile": "admin.secret"},
            {"name": "reader", "secretFile": "reader.secret", "scope": "read-only"},
        ],
    },
}


def allowing(path: str) -> str:
    return service(f"match /{path}/{{id}} {{ allow read, write: if request.auth.uid == 'alice'; }}")


class Tools:
    """Firebase's command-line tools at one server."""

    def __init__(self, served: Program, secret: str = SECRET, project: str = PROJECT) -> None:
        self.port = served.port
        self.secret = secret
        self.project = project
        self.log: list[str] = []

    def send(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/json", **(headers or {})}
        try:
            connection.request(method, path, content, sent)
            answer = connection.getresponse()
            read = answer.read()
        finally:
            connection.close()
        self.log.append(f"{method} {path} {answer.status}")
        return answer.status, json.loads(read) if read[:1] in (b"{", b"[") else read

    def good(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self.send(method, path, body)
        assert status == 200, (method, path, answer)
        return answer

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        status, answer = self.send(method, path, body)
        assert status >= 400 and answer["error"]["code"] == status, (method, path, answer)
        return status, answer["error"]["status"]

    # The steps of `firebase deploy --only firestore`

    def authorize(self) -> None:
        """The form of the library that the tools send it with."""
        boundary = "--------------------------0123456789"
        form = {"refresh_token": self.secret, "client_id": "c", "client_secret": "s", "grant_type": "refresh_token"}
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in form.items()]
        body = ("".join(parts) + f"--{boundary}--\r\n").encode()
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Authorization": ""}
        status, answer = self.send("POST", "/oauth2/v3/token", body, headers)
        assert status == 200 and answer["expires_in"] == 3600, answer
        self.secret = answer["access_token"]

    def prepare(self, database: str, name: str, content: str) -> None:
        asked = ["datastore.indexes.create", "firebase.projects.get", "firebaserules.rulesets.create"]
        path = f"/v1/projects/{self.project}:testIamPermissions"
        assert self.good("POST", path, {"permissions": asked})["permissions"] == asked
        path = f"/v1/projects/{self.project}/services/firestore.googleapis.com"
        assert self.good("GET", path)["state"] == "ENABLED"
        assert self.good("GET", f"/v1beta1/projects/{self.project}")["projectNumber"] == "0"
        root = f"/v1/projects/{self.project}/databases"
        status, answer = self.send("GET", f"{root}/{database}")
        if status == 404:
            made = {"locationId": "nam5", "type": "FIRESTORE_NATIVE", "databaseEdition": "STANDARD"}
            off = {"deleteProtectionState": "DELETE_PROTECTION_DISABLED"}
            off["pointInTimeRecoveryEnablement"] = "POINT_IN_TIME_RECOVERY_DISABLED"
            self.good("POST", f"{root}?databaseId={database}", made | off)
        else:
            assert status == 200, answer
        tested = self.good(
            "POST", f"/v1/projects/{quote(self.project, safe='')}:test", {"source": self.source(name, content)}
        )
        errors = [issue for issue in tested.get("issues", []) if issue["severity"] == "ERROR"]
        assert not errors, [(one["sourcePosition"]["line"], one["sourcePosition"]["column"]) for one in errors]

    @staticmethod
    def source(name: str, content: str) -> Any:
        return {"files": [{"name": name, "content": content}]}

    def releases(self) -> list[Any]:
        found: list[Any] = []
        token = ""
        while True:
            query = urlencode({"pageSize": 10, "pageToken": token})
            page = self.good("GET", f"/v1/projects/{self.project}/releases?{query}")
            found += page["releases"]
            token = page.get("nextPageToken", "")
            if not token:
                return sorted(found, key=lambda one: str(one["createTime"]), reverse=True)

    def upload(self, database: str, name: str, content: str) -> tuple[str, bool]:
        """The name of the ruleset, and whether it was uploaded: one that is in force already is not."""
        suffix = "" if database == "(default)" else f"/{database}"
        prefix = f"projects/{self.project}/releases/cloud.firestore{suffix}"
        present = next((one["rulesetName"] for one in self.releases() if one["name"].startswith(prefix)), None)
        files = self.source(name, content)["files"]
        if present and self.good("GET", f"/v1/{present}")["source"]["files"] == files:
            return present, False
        body = {"source": {"files": files}}
        if suffix:
            body["attachment_point"] = f"firestore.googleapis.com/projects/0/databases{suffix}"
        return self.good("POST", f"/v1/projects/{self.project}/rulesets", body)["name"], True

    def release(self, ruleset: str, database: str = "(default)") -> None:
        name = "cloud.firestore" if database == "(default)" else f"cloud.firestore/{database}"
        release = {"name": f"projects/{self.project}/releases/{name}", "rulesetName": ruleset}
        status, answer = self.send("PATCH", f"/v1/{release['name']}", {"release": release})
        if status != 200:
            assert status == 404, answer
            answer = self.good("POST", f"/v1/projects/{self.project}/releases", release)
        assert answer["rulesetName"] == ruleset

    def deploy(self, content: str, database: str = "(default)", name: str = "firestore.rules") -> bool:
        self.prepare(database, name, content)
        ruleset, is_new = self.upload(database, name, content)
        self.release(ruleset, database)
        return is_new


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hearth.json").write_text(json.dumps(SETTINGS))
    for name, secret in (("token", TOKEN), ("admin", SECRET), ("reader", READER)):
        (tmp_path / f"{name}.secret").write_text(secret)
        (tmp_path / f"{name}.secret").chmod(0o600)
    return tmp_path


@contextmanager
def client(served: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[UserClient]:
    """Google's client as a user with a signed token."""
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", served.address)
    made = UserClient(PROJECT, signed(claims(), TOKEN.encode()))
    try:
        yield made
    finally:
        made.close()


def may(alice: UserClient, path: str) -> bool:
    try:
        alice.document(f"{path}/x").get(retry=None)
    except exceptions.PermissionDenied:
        return False
    return True


def test_a_deployment_is_in_force_with_the_next_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(folder) as served, client(served, monkeypatch) as alice:
        tools = Tools(served)
        tools.authorize()
        assert not may(alice, "a")
        assert tools.deploy(allowing("a"))
        alice.document("a/x").set({"n": 1})
        assert may(alice, "a") and not may(alice, "b")
        # The same again uploads nothing.
        assert not tools.deploy(allowing("a"))
        for number in range(10):
            path = "ab"[number % 2]
            tools.deploy(allowing(path))
            assert may(alice, path) and not may(alice, "ba"[number % 2])
        # Rules that don't compile change nothing.
        broken = allowing("c").replace("allow", "alow")
        status, answer = tools.send(
            "POST", f"/v1/projects/{PROJECT}/rulesets", {"source": tools.source("firestore.rules", broken)}
        )
        assert status == 400 and answer["error"]["status"] == "INVALID_ARGUMENT"
        assert "firestore.rules" in answer["error"]["message"] and "[4:" in answer["error"]["message"]
        tested = tools.good("POST", f"/v1/projects/{PROJECT}:test", {"source": tools.source("f", broken)})
        assert {issue["severity"] for issue in tested["issues"]} >= {"ERROR"}
        assert may(alice, "b")
        # Without a release nobody but administrators may do anything.
        tools.good("DELETE", f"/v1/projects/{PROJECT}/releases/cloud.firestore")
        assert not may(alice, "a") and not may(alice, "b")
        assert tools.releases() == []


def test_who_may_not_deploy(folder: Path) -> None:
    with program(folder) as served:
        tools = Tools(served)
        tools.deploy(allowing("a"))
        path = f"/v1/projects/{PROJECT}/rulesets"
        body = {"source": tools.source("f", allowing("b"))}
        for secret, expected in (("owner", 401), ("x", 401), (signed(claims(), TOKEN.encode()), 403), (READER, 403)):
            assert Tools(served, secret).refused("POST", path, body)[0] == expected
        reader = Tools(served, READER)
        assert len(reader.releases()) == 1
        assert reader.refused("DELETE", f"/v1/projects/{PROJECT}/releases/cloud.firestore")[0] == 403
        assert len(tools.releases()) == 1


def test_restarts_and_kills_keep_what_is_released(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(folder) as served:
        tools = Tools(served)
        tools.deploy(allowing("a"))
        tools.deploy(allowing("b"), database="other")
        assert served.terminate()[0] == 0
    with program(folder) as served, client(served, monkeypatch) as alice:
        assert may(alice, "a") and not may(alice, "b")
        tools = Tools(served)
        assert not tools.deploy(allowing("b"), database="other")
        assert tools.deploy(allowing("c"))
        served.kill()
    with program(folder) as served, client(served, monkeypatch) as alice:
        assert may(alice, "c") and not may(alice, "a")
        assert not Tools(served).deploy(allowing("b"), database="other")
        served.terminate()
    assert_sound(folder / "hearth-data")


def test_kills_in_the_middle_of_deployments(folder: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged = -1
    sent = -1
    for _ in range(6):
        with program(folder) as served:
            tools = Tools(served)
            found = tools.releases()
            if acknowledged >= 0:
                content = tools.good("GET", f"/v1/{found[0]['rulesetName']}")["source"]["files"][0]["content"]
                assert content in (allowing(f"n{acknowledged}"), allowing(f"n{sent}")), (acknowledged, sent, content)
            stop = threading.Timer(chance.uniform(0.02, 0.25), served.process.kill)
            stop.start()
            try:
                while True:
                    ruleset, _ = tools.upload("(default)", "f", allowing(f"n{sent + 1}"))
                    sent += 1
                    tools.release(ruleset)
                    acknowledged = sent
            except (OSError, http.client.HTTPException):
                pass
            stop.join()
    assert acknowledged >= 0


def test_the_last_of_file_and_deployment_wins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = folder / "firestore.rules"
    rules.write_text(allowing("file"))
    with program(folder) as served, client(served, monkeypatch) as alice:
        tools = Tools(served)
        assert may(alice, "file")
        # What the file says is deployed already.
        assert not tools.deploy(allowing("file"))
        assert tools.deploy(allowing("api"))
        assert may(alice, "api") and not may(alice, "file")
        served.kill()
    with program(folder) as served, client(served, monkeypatch) as alice:
        assert may(alice, "api") and not may(alice, "file")
        served.terminate()
    rules.write_text(allowing("changed"))
    with program(folder) as served, client(served, monkeypatch) as alice:
        assert may(alice, "changed") and not may(alice, "api")
        assert not Tools(served).deploy(allowing("changed"))


def test_damaged_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with program(folder) as served:
        Tools(served).deploy(allowing("a"))
        served.terminate()
    rules = folder / "hearth-data" / "+rules" / PROJECT
    (ruleset,) = rules.glob("*.ruleset")
    releases = rules / "releases.json"
    sound = releases.read_bytes()
    for damage in (b"", sound[:-20], sound.replace(b'"format":1', b'"format":2')):
        releases.write_bytes(damage)
        process = Program.spawn(folder)
        assert str(releases.relative_to(folder)) in process.communicate(timeout=PATIENCE)[1] and process.returncode == 73
    releases.write_bytes(sound)
    ruleset.write_bytes(ruleset.read_bytes()[:-20])
    (rules / f"{ruleset.name}.new").write_bytes(b"what a kill has left")
    with program(folder) as served, client(served, monkeypatch) as alice:
        assert not may(alice, "a") and not list(rules.glob("*.new"))
        assert Tools(served).send("GET", f"/v1/projects/{PROJECT}/releases/cloud.firestore")[0] == 200
        tools = Tools(served)
        new = tools.good("POST", f"/v1/projects/{PROJECT}/rulesets", {"source": tools.source("f", allowing("a"))})
        tools.release(new["name"])
        assert may(alice, "a")
        assert "the rules of a release can't be used; clients are refused" in served.terminate()[1]


def test_concurrent_deployments(folder: Path) -> None:
    with program(folder) as served:
        tools = Tools(served)
        made = [tools.upload("(default)", "f", allowing(f"c{n}"))[0] for n in range(6)]
        tools.release(made[0])

        def patch(ruleset: str) -> None:
            mine = Tools(served)
            for _ in range(10):
                mine.release(ruleset)

        threads = [threading.Thread(target=patch, args=(ruleset,)) for ruleset in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        released = tools.releases()
        assert len(released) == 1 and released[0]["rulesetName"] in made
        for ruleset in made:
            status, _ = tools.send("DELETE", f"/v1/{ruleset}")
            assert status == (400 if ruleset == released[0]["rulesetName"] else 200)


class TestIndexes:
    """The second half of a deployment."""

    @staticmethod
    def listed(tools: Tools, root: str) -> tuple[list[Any], list[Any]]:
        indexes = tools.good("GET", f"{root}/collectionGroups/-/indexes").get("indexes", [])
        query = "filter=" + quote("indexConfig.usesAncestorConfig=false OR ttlConfig:*", safe="=:*")
        fields = tools.good("GET", f"{root}/collectionGroups/-/fields?{query}").get("fields", [])
        return indexes, [one for one in fields if "__default__" not in one["name"]]

    @pytest.mark.parametrize("database", ["(default)", "other"])
    def test_a_deployment(self, folder: Path, database: str) -> None:
        root = f"/v1/projects/{PROJECT}/databases/{database}"
        fields = [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "DESCENDING"}]
        group = f"{root}/collectionGroups/c"
        override = {"indexConfig": {"indexes": [{"queryScope": "COLLECTION", "fields": [{"order": "ASCENDING"}]}]}}
        override["indexConfig"]["indexes"][0]["fields"][0]["fieldPath"] = "f"  # type: ignore[index]
        with program(folder) as served:
            tools = Tools(served)
            tools.prepare(database, "firestore.rules", allowing("a"))
            assert self.listed(tools, root) == ([], [])
            tools.good("POST", f"{group}/indexes", {"fields": fields, "queryScope": "COLLECTION"})
            tools.good("PATCH", f"{group}/fields/f?updateMask=indexConfig", override)
            tools.good("PATCH", f"{group}/fields/t?updateMask=indexConfig", {"indexConfig": {"indexes": []}})
            # One with a time to live has no mask.
            tools.good("PATCH", f"{group}/fields/e", {"indexConfig": {"indexes": []}, "ttlConfig": {}})
            served.terminate()
        with program(folder) as served:
            tools = Tools(served)
            indexes, overrides = self.listed(tools, root)
            # The tools drop a last field __name__ that has the order of the one before it.
            assert [one["fields"][:2] for one in indexes] == [fields] and indexes[0]["queryScope"] == "COLLECTION"
            assert indexes[0]["fields"][2:] in ([], [{"fieldPath": "__name__", "order": "DESCENDING"}])
            found = {one["name"].rsplit("/", 1)[1]: one for one in overrides}
            assert set(found) == {"e", "f", "t"}
            assert found["f"]["indexConfig"]["indexes"][0]["fields"] == override["indexConfig"]["indexes"][0]["fields"]
            assert "ttlConfig" in found["e"] and not found["t"]["indexConfig"].get("indexes")
            # What is in the file no more.
            tools.good("DELETE", f"/v1/{indexes[0]['name']}")
            tools.good("PATCH", f"/v1/{found['f']['name']}", {})
            tools.good("PATCH", f"/v1/{found['e']['name']}", {"indexConfig": {"indexes": []}})
            indexes, overrides = self.listed(tools, root)
            assert not indexes and {one["name"].rsplit("/", 1)[1] for one in overrides} == {"e", "t"}
            assert not any("ttlConfig" in one for one in overrides)
