"""Rules of the Realtime Database from the clients' point of view: over REST, with tokens that SDKs create for an
emulator.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from endtoend.trees import OWNER, Tree, failure
from support.tokens import unsigned

DENIED = (401, "Permission denied")
CASES = Path(__file__).parents[2] / "HearthRulesTests" / "cases" / "database"
#: The time of the tables' cases in the unit tests; here it is another.
NOW = "17092098"


def token(uid: str, **claims: Any) -> str:
    return unsigned(uid, **{"firebase": {"sign_in_provider": "custom"}, **claims})


def who(words: str) -> dict[str, str]:
    """The parameters of a request by `UID` or `UID {claims}`."""
    uid, _, claims = words.partition(" ")
    return {"auth": token(uid, **json.loads(claims or "{}"))}


# Information that a write reveals about unreadable data


def test_a_condition_shows_nothing_to_who_may_only_write(tree: Tree) -> None:
    tree.rules(json.dumps({"rules": {"drop": {".read": False, ".write": True}, "box": {".read": True, ".write": True}}}))
    for place in ("drop", "box"):
        tree.put(f"{place}/secret", {"pin": 4711})
    for verb, path, body in (("PUT", "drop/secret", "1"), ("DELETE", "drop", None), ("PUT", "drop", "{}")):
        refused = tree.send(verb, path, body, {"if-match": "abc"})
        assert (refused.status, refused.json) == (412, None)
        assert "etag" not in refused.headers
    shown = tree.send("PUT", "box/secret", "1", {"if-match": "abc"})
    assert (shown.status, shown.json) == (412, {"pin": 4711})
    tag = shown.headers["etag"]
    # A client whose condition holds knew the value.
    assert tree.send("PUT", "drop/secret", "1", {"if-match": tag}).status == 200


def test_the_bound_of_a_size_tells_nothing_to_who_may_not_write(tree: Tree) -> None:
    tree.rules(json.dumps({"rules": {"shut": {".write": False}, "own": {".write": True}}}))
    tree.put("shut/large", "x" * 5_000_000)
    tree.put("own", "x" * 5_000_000)
    for path in ("shut/large", "shut/none"):
        assert failure(tree.send("PATCH", "", json.dumps({path: 1}), writeSizeLimit="tiny")) == DENIED
    assert failure(tree.send("PATCH", "", json.dumps({"own": 1}), writeSizeLimit="tiny"))[0] == 400


# Applications


def files() -> list[str]:
    names = sorted(path.stem for path in CASES.glob("*.txt"))
    assert len(names) >= 30
    return names


@pytest.mark.parametrize("name", files())
def test_applications(tree: Tree, name: str) -> None:
    """The rules and verdicts of the unit tests."""
    rules, rest = (CASES / f"{name}.txt").read_text().split("--- data\n")
    data, cases = rest.split("--- cases\n")
    tree.rules(rules)
    before = json.loads(data)
    tree.put("", before)
    tried = 0
    for line in cases.splitlines():
        if NOW in line:
            continue
        tried += 1
        action, found, person = line.rpartition(" as ")
        verdict, verb, *words = (action if found else line).split(" ", 2)
        parameters = who(person) if found else {}
        if verb == "update":
            reply = tree.send("PATCH", "", words[0], **parameters)
        else:
            path, _, content = words[0].partition(" ")
            if verb == "write":
                reply = tree.send("PUT", path, content, **parameters)
            else:
                query = dict(part.split("=", 1) for part in content.split("&")) if content else {}
                reply = tree.send("GET", path, **query, **parameters)
        if verdict == "allow":
            assert reply.status == 200, (line, reply.content)
            if verb in ("write", "update"):
                tree.put("", before)
        else:
            assert failure(reply) == DENIED, line
    assert tried > 0


# Deployment

REFUSALS = [
    ('{"rules": {"$x": {}, "$y": {}}}', "1:22: Cannot have multiple default rules ('$x' and '$y')."),
    ('{"rules": {".foo": "true"}}', "1:20: Expected '{'."),
    ('{"rules": {"a": true}}', "1:17: Expected '{'."),
    ('{"rules": {"a.b": {}}}', '1:12: String can\'t contain ".", "#", "$", "/", "[", or "]"'),
    (
        '{"rules": {".read": 1}}',
        "1:21: Invalid rule expression.  Expected 'true', 'false', or an expression string.",
    ),
    (
        '{"rules": {".indexOn": 1}}',
        "1:24: Invalid indexOn expression. Must be either a string or an array of strings",
    ),
    ('{"rules": {\n  ".read": "foo == 1"}}', "2:13: Unknown variable 'foo'."),
    ('{"rules": {".read": "newData.exists()"}}', "1:22: newData is invalid in .read expressions."),
    ('{"rules": {".write": "data.foo()"}}', "1:23: No such method/property 'foo'."),
    ('{"rules": {".write": "auth.uid"}}', "1:23: Expression must evaluate to a boolean."),
    ('{"rules": {".write": "data.child()"}}', "1:23: child() expects 1 argument."),
    (
        '{"rules": {".write": "auth.uid.matches(\'a\')"}}',
        "1:40: matches() expects a regular expression literal argument.",
    ),
    ('{"rules": {".write": "auth.uid.matches(/a/g)"}}', "1:41: regular expressions do not support flags other than i"),
    ('{"rules": {".write": "auth.uid = \'a\'"}}', "1:32: Rule expressions may not contain assignments."),
    (
        '{"rules": {".write": "data == newData"}}',
        "1:23: Invalid == expression: left operand is not a number, boolean, string, null.",
    ),
]


@pytest.mark.parametrize(("rules", "text"), REFUSALS)
@pytest.mark.parametrize("dry", [False, True])
def test_refusals(tree: Tree, rules: str, text: str, dry: bool) -> None:
    parameters = {"dryRun": "true"} if dry else {}
    tree.rules({"kept": {".read": True}})
    assert failure(tree.send("PUT", ".settings/rules", rules, OWNER, **parameters)) == (400, text + "\n")
    assert tree.get("kept") is None
    assert failure(tree.send("GET", "")) == DENIED


def test_what_is_not_json(tree: Tree) -> None:
    for text in ("", "rules", "{", '{"rules": {}} {}', '{"rules": {"a"}}'):
        status, error = failure(tree.send("PUT", ".settings/rules", text, OWNER))
        assert status == 400 and ": Parse error: " in error and error.endswith("\n"), text


# Several locations at once


def test_all_places_or_none(tree: Tree) -> None:
    tree.rules({".read": True, "a": {".write": True}, "b": {".write": True, ".validate": "newData.isNumber()"}})
    assert failure(tree.send("PATCH", "", {"a/x": 1, "b": "text"})) == DENIED
    assert failure(tree.send("PATCH", "", {"a/x": 1, "c": 1})) == DENIED
    assert tree.get() is None
    assert tree.send("PATCH", "", {"a/x": 1, "b": 2}).status == 200
    assert failure(tree.send("PATCH", "a", {"x": 5, "y": {".sv": "timestamp"}, "../b": 1}))[0] == 400
    assert tree.get() == {"a": {"x": 1}, "b": 2}


def test_places_see_each_other(tree: Tree) -> None:
    tree.rules({
        ".read": True,
        "from": {".write": "newData.val() + newData.parent().child('to').val() == root.child('from').val() + root.child('to').val()"},
        "to": {".write": "newData.exists()"},
    })
    tree.put("", {"from": 10, "to": 5})
    assert failure(tree.send("PATCH", "", {"from": 7, "to": 9})) == DENIED
    assert failure(tree.send("PUT", "from", 7)) == DENIED
    assert tree.send("PATCH", "", {"from": 7, "to": 8}).status == 200
    assert tree.get() == {"from": 7, "to": 8}
    # Rules see the results of increments.
    up, down = {".sv": {"increment": 3}}, {".sv": {"increment": -3}}
    assert failure(tree.send("PATCH", "", {"from": up, "to": up})) == DENIED
    assert tree.send("PATCH", "", {"from": up, "to": down}).status == 200
    assert tree.get() == {"from": 10, "to": 5}


# Order of checks


def test_a_tag_is_compared_before_rules_for_who_may_read(tree: Tree) -> None:
    tree.rules({
        "open": {".read": True, ".write": "newData.val() == data.val() + 1"},
        "shut": {".write": "newData.val() == data.val() + 1"},
    })
    tree.put("", {"open": 4, "shut": 4})
    stale = {"if-match": "null_etag"}
    reply = tree.send("PUT", "open", 1, stale)
    assert (reply.status, reply.json) == (412, 4)
    assert tree.send("PUT", "open", 5, {"if-match": reply.headers["etag"]}).status == 200
    # A client cannot use tags to detect data that it may not read.
    assert failure(tree.send("PUT", "shut", 1, stale)) == DENIED


def test_an_index_is_asked_for_after_the_right_to_read(tree: Tree) -> None:
    tree.rules({"open": {".read": True}, "shut": {".indexOn": "x"}})
    by = {"orderBy": '"x"', "limitToFirst": "1"}
    assert failure(tree.send("GET", "shut", **by)) == DENIED
    assert failure(tree.send("GET", "open", **by)) == (
        400,
        'Index not defined, add ".indexOn": "x", for path "/open", to the rules',
    )


# Users


def test_somebody_else_in_the_administrator_s_name(tree: Tree) -> None:
    tree.rules({"$uid": {".read": "auth.uid == $uid", ".write": "auth.uid == $uid && auth.token.a.b[1] == 'x'"}})
    as_ann = {"auth_variable_override": '{"uid":"ann","token":{"a":{"b":[0,"x"]}}}'}
    assert tree.send("PUT", "ann", 1, OWNER, **as_ann).status == 200
    assert failure(tree.send("PUT", "bob", 1, OWNER, **as_ann)) == DENIED
    assert failure(tree.send("GET", "ann", headers=OWNER, auth_variable_override="null")) == DENIED
    assert tree.send("GET", "ann", headers=OWNER).json == 1


def test_members_of_tokens(tree: Tree) -> None:
    tree.rules({
        "claims": {".read": "auth.token.role == 'r' && auth.token['odd.name'] === true && auth.token.missing == null"},
        "provider": {".read": "auth.provider == 'anonymous'"},
        "nobody": {".read": "auth == null && auth.uid == null"},
    })
    assert tree.send("GET", "claims", auth=token("a", **{"role": "r", "odd.name": True})).status == 200
    assert failure(tree.send("GET", "claims", auth=token("a", role="s"))) == DENIED
    assert tree.send("GET", "provider", auth=token("a", firebase={"sign_in_provider": "anonymous"})).status == 200
    assert failure(tree.send("GET", "provider", auth=token("a"))) == DENIED
    assert tree.send("GET", "nobody").status == 200
    assert failure(tree.send("GET", "nobody", auth=token("a"))) == DENIED


# Races


def run(count: int, work: Any) -> None:
    """Threads with a connection each; the first error is raised."""
    errors: list[BaseException] = []

    def one(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_a_counter_that_rules_guard_counts_every_success(address: str, tree: Tree) -> None:
    tree.rules({".read": True, "n": {".write": "newData.val() == (data.exists() ? data.val() : 0) + 1"}})
    successes = [0] * 6

    def work(number: int) -> None:
        own = Tree(address, tree.namespace)
        for _ in range(30):
            reply = own.send("PUT", "n", (own.get("n") or 0) + 1)
            assert reply.status == 200 or failure(reply) == DENIED
            successes[number] += reply.status == 200
        own.close()

    run(6, work)
    assert tree.get("n") == sum(successes) >= 30


def test_seats_are_never_sold_twice(address: str, tree: Tree) -> None:
    """Two concurrent writes that together violate a validation of the root never both succeed."""
    tree.rules({
        ".read": True,
        "sold": {
            ".write": "auth != null",
            ".validate": "newData.val() == (data.exists() ? data.val() : 0) + 1"
            " && newData.val() <= root.child('capacity').val()",
        },
        "seats": {
            "$uid": {
                ".write": "auth.uid == $uid && !data.exists()",
                ".validate": "newData.val() == newData.parent().parent().child('sold').val()"
                " && newData.val() == (root.child('sold').exists() ? root.child('sold').val() : 0) + 1",
            }
        },
    })
    tree.put("capacity", 10)

    def work(number: int) -> None:
        own = Tree(address, tree.namespace)
        uid = f"u{number}"
        while True:
            sold = own.get("sold") or 0
            if sold >= 10:
                last = own.send("PATCH", "", {"sold": sold + 1, f"seats/{uid}": sold + 1}, auth=token(uid))
                assert failure(last) == DENIED
                break
            reply = own.send("PATCH", "", {"sold": sold + 1, f"seats/{uid}": sold + 1}, auth=token(uid))
            if reply.status == 200:
                break
            assert failure(reply) == DENIED
        own.close()

    run(16, work)
    after = tree.get()
    assert after["sold"] == 10
    assert sorted(after["seats"].values()) == list(range(1, 11))


def test_new_rules_hold_for_the_next_write(address: str, tree: Tree) -> None:
    tree.rules({".read": True, ".write": True})
    stop = threading.Event()
    # Odd while writing is not allowed; it grows before the rules allow it and after they deny it again.
    generation = [0]
    wrong: list[int] = []

    def work(number: int) -> None:
        own = Tree(address, tree.namespace)
        count = 0
        while not stop.is_set():
            before = generation[0]
            reply = own.send("PUT", f"w{number}", count)
            count += 1
            if before % 2 == 1 and generation[0] == before and reply.status == 200:
                wrong.append(count)
        own.close()

    def flip() -> None:
        try:
            for _ in range(10):
                tree.rules({".read": True, ".write": False})
                generation[0] += 1
                before = tree.get()
                for _ in range(20):
                    assert tree.get() == before
                generation[0] += 1
                tree.rules({".read": True, ".write": True})
        finally:
            stop.set()

    run(4, lambda number: flip() if number == 0 else work(number))
    assert not wrong
    assert tree.get()
