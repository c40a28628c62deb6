"""Permissions: every method of REST and every action of the socket, for every kind of credential, with and without an
override of the user that rules see.

Restrictions of a credential (no writes, or no other project) stay in force with any override.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from endtoend.database_wire import Events, Wire
from endtoend.trees import Tree, production, signed
from support.program import Program

NAMESPACE = "shop-default-rtdb"
RULES = {
    "open": {".read": True, ".write": True},
    "ann": {".read": "auth.uid == 'ann'", ".write": "auth.uid == 'ann'"},
    "nobody": {".read": "auth == null", ".write": "auth == null"},
    "shut": {".read": False, ".write": False},
}
SECRETS = {
    "owner": "the administrator's own secret",
    "reader": "a secret of one who only reads",
    "other": "the secret of another project's administrator",
}
#: The stranger is a user of another project with the same name as one of this project.
PEOPLE = ["nobody", "ann", "stranger", *SECRETS]
#: None: without an override.
OVERRIDES: list[Any] = [None, "null", {"uid": "ann"}, {"uid": "bob"}]
READS = ["GET", "HEAD", "events", "shallow"]
WRITES = ["PUT", "PATCH", "POST", "DELETE", "PUT by override"]
SOCKET_READS = ["q", "g"]
SOCKET_WRITES = ["p", "p if", "m", "o", "om"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    with production(tmp_path_factory.mktemp("rights"), RULES) as started:
        yield started


def is_allowed(person: str, override: Any, place: str, writes: bool) -> bool:
    if override is not None and person not in SECRETS:
        return False
    if person in ("other", "stranger") or (person == "reader" and writes):
        return False
    if person in SECRETS and override is None:
        return True
    uid = {"nobody": None, "ann": "ann"}.get(person)
    if override is not None:
        uid = None if override == "null" else override["uid"]
    return {"open": True, "ann": uid == "ann", "nobody": uid is None, "shut": False}[place]


def secret(person: str) -> str | None:
    if person == "stranger":
        return signed("ann", aud="elsewhere")
    return signed(person) if person == "ann" else SECRETS.get(person)


def rest(server: Program, person: str, override: Any, operation: str, path: str) -> int:
    headers = {"Authorization": f"Bearer {secret(person)}"} if secret(person) else {}
    text = override if override == "null" else json.dumps(override)
    parameters = {} if override is None else {"auth_variable_override": text}
    if operation == "events":
        query = "".join(f"&{name}={value}" for name, value in parameters.items()).replace('"', "%22").replace(" ", "")
        with Events(server.address, NAMESPACE, path, query, headers) as events:
            return events.status
    body = None if operation in (*READS, "DELETE") else {"x": 1}
    verb = operation
    if operation == "shallow":
        verb, parameters["shallow"] = "GET", "true"
    if operation == "PUT by override":
        verb, headers["X-HTTP-Method-Override"] = "POST", "PUT"
    tree = Tree(server.address, NAMESPACE)
    try:
        return tree.send(verb, path, body, headers, **parameters).status
    finally:
        tree.close()


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_rest(server: Program, person: str, override: Any) -> None:
    for place in RULES:
        for operation in READS + WRITES:
            expected = 200 if is_allowed(person, override, place, operation in WRITES) else 401
            assert rest(server, person, override, operation, f"{place}/{person}") == expected, (place, operation)
    for operation, writes in [("GET", False), ("HEAD", False), ("PUT", True)]:
        may = override is None and (person == "owner" or (person == "reader" and not writes))
        tree = Tree(server.address, NAMESPACE)
        headers = {"Authorization": f"Bearer {secret(person)}"} if secret(person) else {}
        parameters = {} if override is None else {"auth_variable_override": "null"}
        body = json.dumps({"rules": RULES}) if writes else None
        assert tree.send(operation, ".settings/rules", body, headers, **parameters).status == (200 if may else 401)
        tree.close()


def connected(server: Program, person: str, override: Any) -> Wire | None:
    """None where the credential is not accepted."""
    wire = Wire(server.address, NAMESPACE)
    if person == "nobody" and override is None:
        return wire
    body: dict[str, Any] = {"cred": secret(person) or ""}
    if override == "null":
        body["noauth"] = True
    elif override is not None:
        body["authvar"] = override
    answer = wire.call("gauth" if person in SECRETS or override is not None else "auth", body)
    is_accepted = person in SECRETS or (override is None and person != "stranger")
    assert (answer["s"] == "ok") == is_accepted, answer
    if answer["s"] == "ok":
        return wire
    wire.close()
    return None


def act(wire: Wire, action: str, path: str) -> str:
    body: dict[str, Any] = {"p": path}
    if action == "q":
        body["h"] = ""
    elif action in ("m", "om"):
        body["d"] = {"x": 1}
    elif action != "g":
        body["d"] = {"x": 1}
    if action == "p if":
        body["h"] = ""
    return str(wire.call(action.split()[0], body)["s"])


@pytest.mark.parametrize("person", PEOPLE)
@pytest.mark.parametrize("override", OVERRIDES, ids=str)
def test_socket(server: Program, person: str, override: Any) -> None:
    wire = connected(server, person, override)
    if wire is None:
        return
    with wire:
        for place in RULES:
            for number, action in enumerate(SOCKET_READS + SOCKET_WRITES):
                expected = "ok" if is_allowed(person, override, place, action in SOCKET_WRITES) else "permission_denied"
                path = f"{place}/s{OVERRIDES.index(override)}{person}{number}"
                assert act(wire, action, path) == expected, (place, action)
                assert wire.call("oc", {"p": path, "d": None})["s"] == "ok"
                assert wire.call("n", {"p": path})["s"] == "ok"


def test_what_is_wished_for_the_end_keeps_its_limits_when_the_credential_changes(server: Program) -> None:
    """An onDisconnect operation runs with the rights that the session has at its end."""
    owner = Tree(server.address, NAMESPACE)
    headers = {"Authorization": f"Bearer {SECRETS['owner']}"}
    for override in [{"uid": "ann"}, None]:
        with Wire(server.address, NAMESPACE) as wire:
            wire.ok("gauth", {"cred": SECRETS["owner"]})
            wire.ok("o", {"p": "open/wish", "d": 1})
            body: dict[str, Any] = {"cred": SECRETS["reader"]}
            wire.ok("gauth", body if override is None else {**body, "authvar": override})
        # Ends after the former session, whose operation is done or dropped by then.
        with Wire(server.address, NAMESPACE, parameters="&ls=" + wire.handshake["d"]["d"]["s"]) as next_one:
            next_one.ok("oc", {"p": "x", "d": None})
        assert owner.get("open/wish", headers=headers) is None
    owner.close()


def test_every_action_has_a_row() -> None:
    """A new action of the socket or method of REST must be added to the tables above."""
    sources = Path(__file__).parents[3] / "Server/Realtime"
    actions = re.findall(r'^            case ((?:"[a-z]+"(?:, )?)+): return \.', (sources / "Sessions/RealtimeRequest.swift").read_text(), re.M)
    named = set(re.findall(r'"([a-z]+)"', " ".join(actions)))
    known = {action.split()[0] for action in SOCKET_READS + SOCKET_WRITES} | {"n", "oc", "auth", "gauth", "unauth"}
    same_as_others = {"l", "u"}
    change_nothing = {"s", "appcheck", "unappeck", "unappcheck"}
    assert named == known | same_as_others | change_nothing
    methods = set(re.findall(r'\(\.data\(let path\), "([A-Z]+)"\)', (sources / "FrontEnds/RealtimeHTTP.swift").read_text()))
    assert methods == {"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"}
