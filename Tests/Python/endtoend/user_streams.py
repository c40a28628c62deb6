"""Listen streams of users, and the loss of their rights."""

from __future__ import annotations

from typing import Any

import grpc

from endtoend.people import Site
from support.streams import Listen
from support.tokens import unsigned
from support.webchannel import WebListen

PERMISSION_DENIED = 7

#: A condition that depends on another document.
MEMBERS = "exists(/databases/$(db)/documents/members/$(request.auth.uid))"


def listener(site: Site, kind: str, channel: grpc.Channel, uid: str | None) -> Any:
    authorization = None if uid is None else f"Bearer {unsigned(uid)}"
    if kind == "grpc":
        return Listen(channel, site.project, database=site.database, authorization=authorization)
    headers = {} if authorization is None else {"Authorization": authorization}
    return WebListen(site.address, site.project, polls=kind == "polls", headers=headers)


def refusal(stream: Any, target: int) -> list[tuple[Any, ...]]:
    """The messages until a target is removed because of a missing right."""
    said = []
    while True:
        message = stream.next()
        assert message is not None
        if message[:3] == ("REMOVE", [target], PERMISSION_DENIED):
            assert message[3]
            return said
        assert message[0] != "REMOVE", message
        said.append(message)


def refused(stream: Any, *targets: int) -> None:
    """All these targets are removed, in any order, before any document is sent."""
    waiting = set(targets)
    while waiting:
        message = stream.next()
        if message[0] == "REMOVE":
            assert message[2] == PERMISSION_DENIED
            waiting -= set(message[1])
        else:
            assert told([message]) == []


def loaded(stream: Any, *targets: int) -> None:
    """Until the boundary after their first results; they may share one."""
    waiting = set(targets)
    while (message := stream.next()) != ("boundary",) or waiting:
        if message[0] == "CURRENT":
            waiting -= set(message[1])


def told(messages: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [one for one in messages if one[0] in ("change", "delete", "document_remove")]
