"""The guide to triggers, run: its function, its configuration and its requests, as they are on the page.

Only ports are exchanged for free ones.
"""

from __future__ import annotations

import concurrent.futures
import http.client
import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.events import Endpoint, Event, Functions, Reply, Request, Served, answers, until
from support.patience import PATIENCE
from support.program import BINARY

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")

PAGE = Path(__file__).parents[3] / "docs/guide/triggers.md"
RATINGS = 60


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    """Lines of a shell block, joined where one goes on."""
    return [command for command in re.split(r"\n(?=curl)", block.strip()) if command.startswith("curl")]


class Running:
    """A server with the page's `hearth.json`, and its function under `functions-framework`."""

    def __init__(self, folder: Path) -> None:
        (folder / "server").mkdir()
        self.served = Served(folder / "server", None)
        environment = {"FIRESTORE_EMULATOR_HOST": self.served.program.address}
        # The second is for the same file.
        self.functions = Functions(folder, "\n".join(blocks("python")), environment)
        self.functions.start("aggregate_ratings")
        self.functions.wait()

    def close(self) -> None:
        self.functions.close()
        self.served.close()

    def configure(self, url: str) -> None:
        triggers = json.loads(blocks("json")[0])["triggers"]
        assert triggers["aggregateRatings"]["url"] == "http://127.0.0.1:8081/"
        triggers["aggregateRatings"]["url"] = url
        self.served.write(triggers)
        until(lambda: self.served.ask("GET", "/hearth/v1/triggers/aggregateRatings")[1].get("url") == url)

    def read(self, path: str) -> dict[str, Any]:
        answer = self.served.good("GET", f"/v1/projects/demo-hearth/databases/(default)/documents/{path}")
        return Event({}, {"value": answer}).after or {}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    made = Running(tmp_path_factory.mktemp("guide"))
    yield made
    made.close()


def rate(running: Running, restaurant: str) -> dict[str, int]:
    """Ratings that are made, changed and deleted by several clients at once; returns those that are left."""
    left: dict[str, int] = {}

    def one(number: int) -> None:
        choice = random.Random(number)
        path = f"restaurants/{restaurant}/ratings/{number}"
        for _ in range(choice.randrange(1, 3)):
            left[path] = choice.randrange(1, 6)
            running.served.put(path, rating=left[path])
        if choice.random() < 0.3:
            running.served.delete(path)
            del left[path]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(RATINGS)))
    return left


def assert_exact(running: Running, restaurant: str, left: dict[str, int]) -> None:
    found = running.read(f"restaurants/{restaurant}")
    assert (found["numRatings"], found["sumRatings"]) == (len(left), sum(left.values()))
    assert found["avgRating"] == sum(left.values()) / len(left)


def test_the_average_of_ratings(running: Running) -> None:
    running.configure(running.functions.url("aggregate_ratings"))
    left = rate(running, "rome")
    running.served.settled("aggregateRatings", seconds=PATIENCE)
    assert_exact(running, "rome", left)
    # The last rating that goes leaves no average, and a restaurant keeps what else it has.
    running.served.put("restaurants/lone", name="Lone")
    running.served.put("restaurants/lone/ratings/a", rating=3)
    running.served.settled("aggregateRatings")
    assert running.read("restaurants/lone") == {"name": "Lone", "numRatings": 1, "sumRatings": 3, "avgRating": 3}
    running.served.delete("restaurants/lone/ratings/a")
    running.served.settled("aggregateRatings")
    assert running.read("restaurants/lone") == {"name": "Lone", "numRatings": 0, "sumRatings": 0, "avgRating": None}


def test_it_is_exact_when_answers_are_lost(running: Running) -> None:
    """Between server and function is what fails every fifth request and loses every fifth answer."""
    port = running.functions.ports["aggregate_ratings"]
    count = iter(range(1 << 40))

    def forward(request: Request) -> Reply | None:
        number = next(count) % 5
        if number == 0:
            return Reply(500)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        headers = {name: content.decode("latin-1") for name, content in request.headers.items()}
        connection.request("POST", request.path, request.body, headers)
        status = connection.getresponse().status
        connection.close()
        return None if number == 1 else Reply(status)

    with Endpoint(forward) as endpoint:
        running.configure(endpoint.url)
        left = rate(running, "paris")
        running.served.settled("aggregateRatings", seconds=PATIENCE)
        assert_exact(running, "paris", left)
        repeated = [request for request in endpoint.all() if request.attempt > 1]
        assert repeated


def test_requests_for_administrators(running: Running, tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on the path")

    def run(command: str) -> Any:
        ended = subprocess.run(
            ["sh", "-c", command.replace("127.0.0.1:8080", running.served.program.address)],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    shells = [commands(block) for block in blocks("sh") if "curl" in block]
    assert [len(of_one) for of_one in shells] == [1, 3, 2]
    (retry,), (put, listed, deleted), (letters, replay) = shells
    assert run(put)["name"] == "audit"
    assert {trigger["name"] for trigger in run(listed)["triggers"]} == {"aggregateRatings", "audit"}
    assert run(deleted) == {}
    failed = running.served.trigger("aggregateRatings")["failedAttempts"]
    with Endpoint(lambda _: Reply(500)) as endpoint:
        triggers = json.loads(blocks("json")[0])["triggers"]
        # What would be sent again tomorrow.
        triggers["aggregateRatings"] |= {"url": endpoint.url, "retry": {"minBackoff": "23h", "maxBackoff": "23h"}}
        running.served.write(triggers)
        until(lambda: running.served.trigger("aggregateRatings")["url"] == endpoint.url)
        running.served.put("restaurants/bonn/ratings/a", rating=4)
        until(lambda: running.served.trigger("aggregateRatings")["failedAttempts"] > failed)
        endpoint.answer = lambda _: Reply()
        assert run(retry) == {"pending": 1}
        running.served.settled("aggregateRatings")
        assert [request.attempt for request in endpoint.all()] == [1, 2]
        endpoint.clear()
        endpoint.answer = lambda _: Reply(500)
        triggers["aggregateRatings"] |= {"url": endpoint.url, "retry": {"maxAttempts": 1}}
        running.served.write(triggers)
        until(lambda: running.served.trigger("aggregateRatings")["retry"] == {"maxAttempts": 1})
        running.served.put("restaurants/oslo/ratings/a", rating=4)
        running.served.settled("aggregateRatings")
        (letter,) = run(letters)["deadLetters"]
        assert letter["document"].endswith("/restaurants/oslo/ratings/a") and letter["attempts"] == 1
        endpoint.answer = lambda _: Reply()
        assert run(replay) == {"events": 1}
        running.served.settled("aggregateRatings")
        assert [request.event.id for request in endpoint.all()] == [letter["id"]] * 2
        assert run(letters) == {"deadLetters": []}


def test_what_a_function_throws_is_shown(running: Running) -> None:
    running.configure(running.functions.url("aggregate_ratings"))
    running.served.put("restaurants/wrong/ratings/a", rating="five")
    shown = until(lambda: running.served.trigger("aggregateRatings").get("lastError", {}).get("message"))
    until(lambda: "TypeError" in running.served.trigger("aggregateRatings")["lastError"]["message"], shown)
    message = running.served.trigger("aggregateRatings")["lastError"]["message"]
    assert message.startswith("The endpoint answered 500: TypeError: unsupported operand type"), message


def test_the_terms_of_a_trigger(running: Running) -> None:
    _, members, terms = (json.loads(block) for block in blocks("json"))
    assert running.served.good("PUT", "/hearth/v1/triggers/orders", terms)["retry"] == terms["retry"]
    running.served.good("DELETE", "/hearth/v1/triggers/orders")
    (body,) = members["triggers"].values()
    assert running.served.good("PUT", "/hearth/v1/triggers/members", body)["ref"] == body["ref"]
    running.served.good("DELETE", "/hearth/v1/triggers/members")


def test_the_function_is_served(running: Running) -> None:
    """The page's command names the function that the page's program has."""
    (command,) = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith("functions-framework")
    ]
    assert "--target aggregate_ratings --signature-type cloudevent" in command
    assert answers(running.functions.ports["aggregate_ratings"])
