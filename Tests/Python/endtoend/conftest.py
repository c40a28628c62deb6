"""The server under test, and its clients.

`FIRESTORE_EMULATOR_HOST` names a running server; without it Hearth is started from `HEARTH_BINARY`. Every test gets a
project of its own, so that tests neither share documents nor depend on their order.
"""

from __future__ import annotations

import http.client
import os
import uuid
from collections.abc import AsyncIterator, Iterator

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import firestore

from endtoend.people import Site
from endtoend.rest import Rest
from endtoend.trees import Tree
from support.patience import PATIENCE
from support.servers import Unavailable, hearth
from support.wire import METHODS, parse


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "emulator_differs(reason): Google's emulator is known to answer otherwise")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    given = os.environ.get("FIRESTORE_EMULATOR_HOST")
    if given:
        yield given
        return
    try:
        with hearth() as started:
            os.environ["FIRESTORE_EMULATOR_HOST"] = started
            yield started
            del os.environ["FIRESTORE_EMULATOR_HOST"]
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def is_emulator(address: str) -> bool:
    """Whether the server is Google's emulator: it does not implement PartitionQuery."""
    method = METHODS["PartitionQuery"]
    with grpc.insecure_channel(address) as channel:
        call = channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        query = {
            "from": [{"collectionId": "c", "allDescendants": True}],
            "orderBy": [{"field": {"fieldPath": "__name__"}}],
        }
        body = {
            "parent": "projects/demo/databases/(default)/documents",
            "structuredQuery": query,
            "partitionCount": "1",
        }
        try:
            call(parse(method, body), metadata=[("authorization", "Bearer owner")])
        except grpc.RpcError as error:
            return error.code() == grpc.StatusCode.UNIMPLEMENTED
    return False


@pytest.fixture(autouse=True)
def _known_difference(request: pytest.FixtureRequest) -> None:
    marker = request.node.get_closest_marker("emulator_differs")
    if marker is not None and request.getfixturevalue("is_emulator"):
        pytest.skip(f"the emulator differs: {marker.args[0]}")


@pytest.fixture
def project(address: str) -> str:
    return f"demo-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def db(project: str) -> Iterator[firestore.Client]:
    client = firestore.Client(project=project, credentials=AnonymousCredentials())
    yield client
    client.close()


@pytest.fixture
async def async_db(project: str) -> AsyncIterator[firestore.AsyncClient]:
    yield firestore.AsyncClient(project=project, credentials=AnonymousCredentials())


@pytest.fixture
def channel(address: str) -> Iterator[grpc.Channel]:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(address, options=options) as opened:
        yield opened


@pytest.fixture
def rest(address: str, project: str) -> Iterator[Rest]:
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
    yield Rest(connection, project)
    connection.close()


@pytest.fixture
def tree(address: str, project: str) -> Iterator[Tree]:
    """A namespace of the Realtime Database."""
    made = Tree(address, project)
    yield made
    made.close()


@pytest.fixture
def site(address: str, project: str) -> Iterator[Site]:
    made = Site(address, project)
    yield made
    made.close()


@pytest.fixture(params=["grpc", "rest"])
def over_rest(request: pytest.FixtureRequest) -> bool:
    return request.param == "rest"
