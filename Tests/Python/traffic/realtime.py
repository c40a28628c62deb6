"""Sessions of the Realtime Database over WebSockets and long polling, and event streams beside them."""

from __future__ import annotations

import http.client
import random
import select
import socket
import time
from typing import Any

from endtoend.database_poller import Poller
from endtoend.database_wire import Events, Tree, Wire
from support.patience import PATIENCE
from traffic.content import letters, size
from traffic.served import Finding, Served
from traffic.tunnel import Network

#: A page's puts: less than the server takes of a message of somebody unknown before it is whole.
PAGE_BYTES_MAX = 40_000
#: Of one request of long polling: an address has at most 32 KiB.
PIECES_MAX = 15


def pushed(push: dict[str, Any], written: list[str]) -> list[str]:
    """What may still be pushed to a listener after one of the values that were written in this order."""
    value = push["b"]["d"]
    if value not in written:
        raise Finding(f"a push of {len(str(value))} characters that nobody wrote, or out of order")
    return written[written.index(value) + 1 :]


class SocketLane:
    """A WebSocket whose puts come back by get, and by the listen of another socket in order."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.namespace = f"socket{number}"
        self.network = Network(served, seed, number)
        self.chance = random.Random(f"{seed}/{number}/socket")
        self.number = 0
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    def run(self, until: float) -> None:
        while time.monotonic() < until or not self.counts["whole"]:
            address = self.network.address()
            deflates = self.chance.random() < 0.5
            options = {} if deflates else {"compression": None}
            with Wire(address, self.namespace, **options) as writer, Wire(address, self.namespace) as reader:
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
            if time.monotonic() > until and self.counts["whole"]:
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
            waiting = list(values)
            while waiting:
                waiting = pushed(reader.push(), waiting)
            self.counts["whole"] += len(values)
            self.counts["bytes"] += sum(len(value) for value in values)


class Page(Poller):
    """A page with two connections, as browsers have them: a request that waits is answered when the next one comes."""

    def __init__(self, address: str, namespace: str, chance: random.Random) -> None:
        self.chance = chance
        self.free = [http.client.HTTPConnection(address, timeout=PATIENCE) for _ in range(2)]
        self.busy: list[http.client.HTTPConnection] = []
        #: By number: the connections may exchange the order of the answers.
        self.early: dict[int, list[Any]] = {}
        super().__init__(address, namespace)

    def request(self, target: str, method: str = "GET") -> None:
        connection = self.free.pop(0)
        connection.request(method, target)
        self.busy.append(connection)

    def read(self, status: int = 200) -> str:
        """Of the request that is answered first."""
        answered, _, _ = select.select([connection.sock for connection in self.busy], [], [], PATIENCE)
        connection = next(connection for connection in self.busy if connection.sock in answered)
        self.busy.remove(connection)
        self.free.append(connection)
        answer = connection.getresponse()
        body = answer.read().decode()
        if answer.status != status:
            raise Finding(f"a request of long polling was answered with {answer.status}: {body[:300]}")
        return body

    def get(self, target: str, status: int = 200, method: str = "GET") -> str:
        self.request(target, method)
        return self.read(status)

    def take(self, script: str) -> None:
        for name, arguments in self.calls(script):
            if name == "pRTLPCB":
                self.early[arguments[0]] = arguments[1]
            elif arguments[0] == "close":
                raise Finding("the server ended a page's session")
        while (messages := self.early.pop(self.number, None)) is not None:
            self.number += 1
            self.messages += messages

    def target(self, pieces: list[str]) -> str:
        self.serial += 1
        data = "".join("&" + piece.format(index) for index, piece in enumerate(pieces))
        return f"/.lp?{self.who}&ser={self.serial}{data}"

    def say(self, *messages: Any) -> None:
        """In as many requests as chance wants. The last answer contains the waiting messages."""
        pieces = [piece for message in messages for piece in self.pieces(message)]
        while pieces:
            count = self.chance.randrange(1, PIECES_MAX + 1)
            self.request(self.target(pieces[:count]))
            pieces = pieces[count:]
            if not self.free:
                self.take(self.read())
        while self.busy:
            self.take(self.read())

    def take_pushes(self) -> list[dict[str, Any]]:
        found = [message["d"] for message in self.messages if "a" in message["d"]]
        self.messages = [message for message in self.messages if "a" not in message["d"]]
        return found

    def goodbye(self) -> None:
        self.get(f"/.lp?{self.who}&disconn=t", 204, "POST")
        for connection in self.free:
            connection.close()


class PollLane:
    """A page by long polling: its puts in many requests, its gets, and a listen that has each value in order."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.namespace = f"poll{number}"
        self.network = Network(served, seed, number)
        self.chance = random.Random(f"{seed}/{number}/poll")
        self.number = 0
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    def run(self, until: float) -> None:
        tree = Tree(self.network.address(), self.namespace)
        while time.monotonic() < until or not self.counts["whole"]:
            page = Page(self.network.address(), self.namespace, self.chance)
            self.counts["connections"] += 2
            self._session(page, tree, until)
            if self.chance.random() < 0.5:
                self.counts["reset"] += 1
                self._break_off(page)
            page.goodbye()
        tree.close()

    def _session(self, page: Page, tree: Tree, until: float) -> None:
        requests = 1
        if page.ask(requests, "q", {"p": "/v", "h": ""})["s"] != "ok":
            raise Finding("a listen was refused")
        page.take_pushes()
        for _ in range(self.chance.randrange(1, 25)):
            if time.monotonic() > until and self.counts["whole"]:
                return
            self.number += 1
            value = f"{self.number} "
            if self.chance.random() < 0.5:
                value += letters(self.number, size(self.chance, PAGE_BYTES_MAX))
                requests += 1
                if page.ask(requests, "p", {"p": "/v", "d": value})["s"] != "ok":
                    raise Finding("a put was refused")
            else:
                value += letters(self.number, size(self.chance))
                tree.put("v", value)
            waiting = [value]
            while waiting:
                for push in page.take_pushes():
                    waiting = pushed(push, waiting)
                if waiting:
                    page.poll()
            requests += 1
            answer = page.ask(requests, "g", {"p": "/v", "q": {}})
            if answer["s"] != "ok" or answer["d"] != value:
                raise Finding(f"a get brought {len(str(answer))} characters instead of {len(value)}")
            self.counts["whole"] += 2
            self.counts["bytes"] += 2 * len(value)

    def _break_off(self, page: Page) -> None:
        """Within a request, within an answer, or while nothing is there to answer."""
        get = page.pieces({"t": "d", "d": {"r": 1 << 20, "a": "g", "b": {"p": "/v", "q": {}}}})
        target = page.target(get if self.chance.random() < 0.7 else [])
        request = f"GET {target} HTTP/1.1\r\nhost: {page.address}\r\n\r\n".encode()
        host, port = page.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=PATIENCE) as raw:
            if self.chance.random() < 0.4:
                raw.sendall(request[: self.chance.randrange(len(request))])
            else:
                raw.sendall(request)
                if "seg0" in target:
                    raw.recv(self.chance.randrange(1, 70_000))


class EventLane:
    """An event stream that gets each value that its namespace is given."""

    def __init__(self, served: Served, seed: int, number: int) -> None:
        self.served = served
        self.namespace = f"events{number}"
        self.network = Network(served, seed, number)
        self.chance = random.Random(f"{seed}/{number}/events")
        self.number = 0
        self.counts = {"whole": 0, "reset": 0, "connections": 0, "bytes": 0}

    def run(self, until: float) -> None:
        tree = Tree(self.network.address(), self.namespace)
        while time.monotonic() < until or not self.counts["whole"]:
            address = self.network.address()
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
