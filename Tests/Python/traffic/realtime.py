"""Sessions of the Realtime Database over WebSockets and long polling, and event streams beside them."""

from __future__ import annotations

import random
import time
from contextlib import suppress

from endtoend.database_poller import Poller
from endtoend.database_wire import Events, Tree, Wire
from traffic.content import letters, size
from traffic.served import Finding, Served


class SocketLane:
    """A WebSocket whose puts come back by get, and by the listen of another socket in order."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.namespace = f"socket{number}"
        self.chance = random.Random(f"{seed}/{number}/socket")
        self.number = 0
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.served.port}"

    def run(self, until: float) -> None:
        while time.monotonic() < until:
            deflates = self.chance.random() < 0.5
            options = {} if deflates else {"compression": None}
            with Wire(self.address, self.namespace, **options) as writer, Wire(self.address, self.namespace) as reader:
                self.counts["connections"] += 2
                self._session(writer, reader, until)
                if self.chance.random() < 0.3:
                    # In the middle of an answer.
                    self.counts["reset"] += 1
                    writer.begin("q", {"p": "/v", "h": ""})
                    writer.socket.socket.close()

    def _session(self, writer: Wire, reader: Wire, until: float) -> None:
        reader.ok("q", {"p": "/v", "h": ""})
        reader.wait()
        for _ in range(self.chance.randrange(1, 30)):
            if time.monotonic() > until:
                return
            values = []
            for _ in range(self.chance.choice([1, 1, 4])):
                self.number += 1
                # No two are equal: what changes nothing is not pushed.
                values.append(f"{self.number} " + letters(self.number, size(self.chance)))
            numbers = [writer.begin("p", {"p": "/v", "d": value}) for value in values]
            for number in numbers:
                if writer.answer(number)["s"] != "ok":
                    raise Finding("a put was refused")
            # The listener may skip values that were replaced at once, and has the last one in the end.
            position = 0
            while True:
                pushed = reader.push()
                data = pushed["b"]["d"]
                if data not in values[position:]:
                    raise Finding(f"a push of {len(data)} characters that nobody wrote, or out of order")
                position += values[position:].index(data)
                if data == values[-1]:
                    break
            self.counts["whole"] += len(values)
            self.counts["bytes"] += sum(len(value) for value in values)


class PollLane:
    """Long polling."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.namespace = f"poll{number}"
        self.chance = random.Random(f"{seed}/{number}/poll")
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    def run(self, until: float) -> None:
        while time.monotonic() < until:
            page = Poller(f"127.0.0.1:{self.served.port}", self.namespace)
            self.counts["connections"] += 1
            number = 0
            for _ in range(self.chance.randrange(1, 25)):
                if time.monotonic() > until:
                    break
                value = letters(self.chance.randrange(1 << 20), size(self.chance, 60_000))
                number += 1
                # A message has to fit one request: see Poller.say.
                if page.ask(number, "p", {"p": "/v", "d": value[:1_000]})["s"] != "ok":
                    raise Finding("a put was refused")
                number += 1
                answer = page.ask(number, "g", {"p": "/v", "q": {}})
                if answer["s"] != "ok" or answer["d"] != value[:1_000]:
                    raise Finding(f"a get brought {len(str(answer))} characters")
                self.counts["whole"] += 2
                self.counts["bytes"] += len(value)
            with suppress(AssertionError):
                page.say({"t": "c", "d": {"t": "g", "d": {}}})


class EventLane:
    """An event stream that gets each value that its namespace is given."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.namespace = f"events{number}"
        self.chance = random.Random(f"{seed}/{number}/events")
        self.number = 0
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    def run(self, until: float) -> None:
        address = f"127.0.0.1:{self.served.port}"
        tree = Tree(address, self.namespace)
        while time.monotonic() < until:
            with Events(address, self.namespace, "v", headers={"Authorization": "Bearer owner"}) as events:
                self.counts["connections"] += 1
                if events.status != 200:
                    raise Finding(f"an event stream was answered with {events.status}")
                events.next()
                for _ in range(self.chance.randrange(1, 30)):
                    self.number += 1
                    value = f"{self.number} " + letters(self.number, size(self.chance))
                    tree.put("v", value)
                    while (event := events.next())[0] == "keep-alive":
                        pass
                    if event != ("put", {"path": "/", "data": value}):
                        raise Finding(f"an event {event[0]} of {len(str(event[1]))} characters instead of {len(value)}")
                    self.counts["whole"] += 1
                    self.counts["bytes"] += len(value)
                if self.chance.random() < 0.3:
                    self.counts["reset"] += 1
                    tree.put("v", letters(1, 200_000))
        tree.close()
