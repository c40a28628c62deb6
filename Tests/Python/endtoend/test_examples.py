"""The examples in Tools/Examples that are no programs in Swift: their pages' commands do what the pages say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.events import answers, until
from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program
from support.servers import free_port

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

EXAMPLES = Path(__file__).parents[3] / "Tools/Examples"


class Example:
    """A copy of an example's folder, and the shell blocks of its page, in their order."""

    def __init__(self, name: str, folder: Path) -> None:
        self.folder = Path(shutil.copytree(EXAMPLES / name, folder / name))
        self.blocks = re.findall(r"^```sh\n(.*?)^```$", (self.folder / "README.md").read_text(), re.M | re.S)
        programs = folder / "programs"
        programs.mkdir()
        (programs / "hearth").symlink_to(Path(BINARY).resolve())
        self.environment = environment_of_a_child({"PATH": f"{programs}:{os.environ['PATH']}"})

    def run(self, block: str, ports: dict[str, int] | None = None) -> subprocess.CompletedProcess[str]:
        """Runs commands to their end, with other ports than the page's. The first failure ends them."""
        for port, other in (ports or {}).items():
            block = block.replace(port, str(other))
        command = ["sh", "-ec", block]
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE
        )


# Rules


@pytest.fixture
def rules(tmp_path: Path) -> Example:
    return Example("Rules", tmp_path)


def test_rules_and_their_cases(rules: Example) -> None:
    commands, explain, _, _ = rules.blocks
    ended = rules.run(commands)
    assert (ended.returncode, ended.stderr) == (0, "")
    warning, *results = ended.stdout.splitlines()
    assert warning.startswith(
        "firestore.rules:17:38: warning: For a list, only the fields that its query filters are known"
    )
    assert results == ["11 of 11 cases as expected.", "12 of 12 cases as expected."]
    assert "expressions evaluated" in (rules.folder / "coverage.html").read_text()
    assert rules.run(explain).returncode == 0


@pytest.mark.parametrize(
    ("rule", "other", "failures"),
    [
        # What the page proposes.
        ("if isOwner();", "if isSignedIn();", 1),
        ("if isOwner()\n", "if request.auth.uid in resource.data.members\n", 1),
        ("&& request.resource.data.owner == resource.data.owner\n", "", 1),
        ("&& resource.data.owner in request.resource.data.members;", ";", 1),
        ("request.auth.uid in list(id).members", "true", 4),
        ("isMember() && isValid()", "isMember()", 4),
        ("if isMember();", "if false;", 2),
    ],
)
def test_cases_fail_with_other_rules(rules: Example, rule: str, other: str, failures: int) -> None:
    file = rules.folder / "firestore.rules"
    before = file.read_text()
    assert before.count(rule) == 1, before.count(rule)
    file.write_text(before.replace(rule, other))
    ended = [rules.run(f"hearth rules test firestore.rules {cases}.json") for cases in ("lists", "tasks")]
    expected = [re.search(r"^(\d+) of (\d+) cases", one.stdout, re.M) for one in ended]
    assert sum(int(found[2]) - int(found[1]) for found in expected if found) == failures
    assert sorted(one.returncode for one in ended) == [0, 1]


@contextmanager
def serving(example: Example, block: str) -> Iterator[Program]:
    """The server that the page's command starts in the example's folder, on a free port."""
    words = block.split()
    assert words[:2] == ["hearth", "serve"] and words[-2:] == ["--port", "8080"], block
    with program(example.folder, *words[2:-2]) as started:
        yield started


def test_rules_of_the_realtime_database(rules: Example) -> None:
    _, _, serve, tests = rules.blocks
    with serving(rules, serve) as server:
        ended = rules.run(tests, {"8080": server.port})
        assert ended.returncode == 0 and "Ran 4 tests" in ended.stderr, ended.stderr
        file = rules.folder / "database.rules.json"
        file.write_text(file.read_text().replace("auth.uid === $user", "true"))
        until(lambda: "FAILED (failures=1)" in rules.run(tests, {"8080": server.port}).stderr)


# Ratings

ROME = "/v1/projects/demo-hearth/databases/(default)/documents/restaurants/rome"


class Ratings:
    """The server and the function of the example, on ports of their own."""

    def __init__(self, example: Example, server: Program, port: int) -> None:
        self.example = example
        self.server = server
        self.port = port
        self.function: subprocess.Popen[bytes] | None = None

    @property
    def ports(self) -> dict[str, int]:
        return {"8080": self.server.port, "8081": self.port}

    def start(self) -> None:
        command = self.example.blocks[0].replace("8081", str(self.port)).split()
        environment = {**self.example.environment, "FIRESTORE_EMULATOR_HOST": self.server.address}
        self.function = subprocess.Popen(
            command, cwd=self.example.folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(lambda: answers(self.port))

    def end(self) -> None:
        if self.function:
            self.function.kill()
            self.function.wait()

    def figures(self) -> dict[str, Any]:
        status, body = self.server.send("GET", ROME)
        return json.loads(body)["fields"] if status == 200 else {}

    def run(self, block: str) -> str:
        ended = self.example.run(block, self.ports)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def triggers(self) -> dict[str, Any]:
        command = "hearth triggers show averageOfRatings --json --host 127.0.0.1:8080"
        return dict(json.loads(self.run(command)))


@pytest.fixture
def ratings(tmp_path: Path) -> Iterator[Ratings]:
    example = Example("Ratings", tmp_path)
    port = free_port()
    configuration = example.folder / "hearth.json"
    assert configuration.read_text().count(":8081/") == 1
    configuration.write_text(configuration.read_text().replace(":8081/", f":{port}/"))
    with serving(example, example.blocks[1]) as server:
        running = Ratings(example, server, port)
        try:
            yield running
        finally:
            running.end()


KEPT = {"ratings": {"integerValue": "2"}, "stars": {"integerValue": "9"}, "average": {"doubleValue": 4.5}}


def test_ratings_are_counted_once(ratings: Ratings) -> None:
    _, _, rate, shown, replay = ratings.example.blocks
    ratings.start()
    ratings.run(rate)
    until(lambda: ratings.figures() == KEPT, ratings.figures)
    assert "averageOfRatings" in ratings.run(shown)
    delivered = ratings.triggers()["delivered"]
    ratings.run(replay)
    until(lambda: ratings.triggers()["delivered"] == delivered + 3, ratings.triggers)
    assert ratings.figures() == KEPT
    status, _ = ratings.server.send("DELETE", f"{ROME}/ratings/adam")
    assert status == 200
    until(lambda: ratings.figures()["ratings"] == {"integerValue": "1"}, ratings.figures)
    assert ratings.figures()["average"] == {"doubleValue": 5.0}


def test_ratings_wait_for_the_function(ratings: Ratings) -> None:
    ratings.run(ratings.example.blocks[2])
    until(lambda: ratings.triggers()["pending"] == 3, ratings.triggers)
    ratings.start()
    until(lambda: ratings.figures() == KEPT, ratings.figures)
