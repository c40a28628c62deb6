"""Random documents of all value types go from Google's emulator to Hearth and back, as managed exports and as lines, by
`hearth export` and `hearth import`, and come back equal, bit by bit.

    HEARTH_TEST_SEEDS=200 HEARTH_TEST_SEED=1 pytest endtoend/test_export_seeds.py -s     # about a second a seed
"""

from __future__ import annotations

import os
import random
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud.firestore_v1.services.firestore import FirestoreClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcTransport
from google.cloud.firestore_v1.types import (
    ArrayValue,
    CommitRequest,
    Document,
    MapValue,
    RunQueryRequest,
    StructuredQuery,
    Value,
    Write,
)
from google.protobuf import timestamp_pb2

from support.patience import PATIENCE
from support.program import BINARY, environment_of_a_child
from support.servers import Unavailable, emulator, hearth

SEEDS = int(os.environ.get("HEARTH_TEST_SEEDS", "3"))
DOCUMENTS = 25
METADATA = [("authorization", "Bearer owner")]
COLLECTIONS = ["c", "ü", "日本 x", "k.k", "_k", "K"]
NAMES = [
    *("a", "ü", "日本", "😀", "a b", "a.b", "`q`", "x\\y", "z", "é", "e\u0301", "\ufffe", "_", "__a", "a" * 50),
    *("1", '"', "'", "\n", "\x01"),
]
STRINGS = ["", "a", "😀", "\x00", "\ufffd\uffff", "x" * 2000, "__x__", "\r\n"]
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.7e308, 1.0]
SECONDS = [0, -62135596800, 253402300799, -1]
NANOSECONDS = [0, 1000, 999999000, 123456000]
PATHS = ["a/b", "a/__id7__", "ü/😀", "a/b/c/d", "a/e\u0301"]
LATITUDES = [0.0, -0.0, 90.0, -90.0]
LONGITUDES = [0.0, -0.0, 180.0, -180.0]


class Maker:
    """Documents that a seed determines."""

    def __init__(self, seed: str, project: str) -> None:
        self.random = random.Random(seed)
        self.project = project
        self.root = f"projects/{project}/databases/(default)/documents"

    def id(self, number: int) -> str:
        among = self.random
        return among.choice(
            [
                f"__id{among.randint(1, 9) ** among.randint(1, 18)}__",
                *(f"d{number}", f"ü😀{number}", f"a b{number}", f"%2F{number}", str(number), f"~{number}"),
                *(f"e\u0301{number}", f"...{number}", f"\n{number}", "007", f"__id0{number}x", f"_{number}_"),
                f"-{number}",
            ]
        )

    def document(self, number: int) -> Document:
        depth = self.random.choice([1, 1, 1, 2, 3])
        path = [part for _ in range(depth) for part in (self.random.choice(COLLECTIONS), self.id(number))]
        fields = {self.random.choice(NAMES): self.value() for _ in range(self.random.randint(0, 6))}
        return Document(name=f"{self.root}/{'/'.join(path)}", fields=fields)

    def value(self, depth: int = 0, *, is_element: bool = False) -> Value:
        among = self.random
        kind = among.randint(0, 13 if depth < 6 else 10)
        match kind:
            case 0:
                return Value({"null_value": 0})
            case 1:
                return Value(boolean_value=among.random() < 0.5)
            case 2:
                return Value(integer_value=among.choice([*INTEGERS, among.getrandbits(40)]))
            case 3:
                return Value(double_value=among.choice([*DOUBLES, among.random()]))
            case 4:
                seconds = among.choice([*SECONDS, among.getrandbits(31)])
                nanoseconds = among.choice(NANOSECONDS)
                return Value(timestamp_value=timestamp_pb2.Timestamp(seconds=seconds, nanos=nanoseconds))
            case 5:
                return Value(string_value=among.choice(STRINGS))
            case 6:
                return Value(bytes_value=among.choice([b"", b"\0\xff", among.randbytes(300)]))
            case 7:
                project, database = among.choice([self.project, "other"]), among.choice(["(default)", "db2"])
                path = f"projects/{project}/databases/{database}/documents/{among.choice(PATHS)}"
                return Value(reference_value=path)
            case 8:
                latitude = among.choice([*LATITUDES, among.uniform(-90, 90)])
                longitude = among.choice([*LONGITUDES, among.uniform(-180, 180)])
                return Value(geo_point_value={"latitude": latitude, "longitude": longitude})
            case 9:
                return Value(map_value=MapValue())
            case 10:
                # The emulator refuses one in an array.
                return Value(boolean_value=True) if is_element else self.vector()
            case 11:
                value = Value(string_value="deep")
                for _ in range(among.randint(1, 12 - depth)):
                    value = Value(map_value=MapValue(fields={"m": value}))
                return value
            case 12 if not is_element:
                elements = [self.value(depth + 1, is_element=True) for _ in range(among.randint(0, 4))]
                return Value(array_value=ArrayValue(values=elements))
        fields = {among.choice(NAMES): self.value(depth + 1) for _ in range(among.randint(0, 4))}
        return Value(map_value=MapValue(fields=fields))

    def vector(self) -> Value:
        numbers = [self.random.choice([1.5, -0.0, float("inf"), 2.0]) for _ in range(self.random.choice([1, 2, 5]))]
        elements = ArrayValue(values=[Value(double_value=number) for number in numbers])
        kind = Value(string_value="__vector__")
        return Value(map_value=MapValue(fields={"__type__": kind, "value": Value(array_value=elements)}))


def canonical(value: Any) -> Any:
    """A protobuf value in a form that is equal only for equal bits."""
    kind = value.WhichOneof("value_type")
    match kind:
        case "double_value":
            return kind, "NaN" if value.double_value != value.double_value else struct.pack(">d", value.double_value)
        case "geo_point_value":
            return kind, struct.pack(">dd", value.geo_point_value.latitude, value.geo_point_value.longitude)
        case "map_value":
            return kind, {name: canonical(member) for name, member in value.map_value.fields.items()}
        case "array_value":
            return kind, [canonical(element) for element in value.array_value.values]
        case "timestamp_value":
            return kind, value.timestamp_value.seconds, value.timestamp_value.nanos
    return kind, getattr(value, kind)


def moved(value: Any, source: str, target: str) -> Any:
    """With the references into the source changed."""
    kind = value[0]
    if kind == "reference_value":
        return kind, value[1].replace(
            f"projects/{source}/databases/(default)/", f"projects/{target}/databases/(default)/"
        )
    if kind == "map_value":
        return kind, {name: moved(member, source, target) for name, member in value[1].items()}
    if kind == "array_value":
        return kind, [moved(element, source, target) for element in value[1]]
    return value


Contents = dict[str, dict[str, Any]]


def moved_all(contents: Contents, source: str, target: str) -> Contents:
    return {
        name: {field: moved(value, source, target) for field, value in fields.items()}
        for name, fields in contents.items()
    }


class Side:
    """One of both servers."""

    def __init__(self, address: str) -> None:
        self.address = address
        channel = grpc.insecure_channel(address, [("grpc.max_receive_message_length", -1)])
        self.client = FirestoreClient(transport=FirestoreGrpcTransport(channel=channel))

    def contents(self, project: str) -> Contents:
        query = StructuredQuery(
            {"from_": [{"all_descendants": True}], "order_by": [{"field": {"field_path": "__name__"}}]}
        )
        root = f"projects/{project}/databases/(default)/documents"
        found = {}
        request = RunQueryRequest(parent=root, structured_query=query)
        for answer in self.client.run_query(request, metadata=METADATA):
            if answer.document.name:
                document = Document.pb(answer.document)
                fields = {name: canonical(value) for name, value in document.fields.items()}
                found[document.name.removeprefix(root)] = fields
        return found

    def fill(self, project: str, maker: Maker) -> int:
        """Returns how many documents the server refused."""
        refused = 0
        for number in range(DOCUMENTS):
            writes = [Write(update=maker.document(number))]
            request = CommitRequest(database=f"projects/{project}/databases/(default)", writes=writes)
            try:
                self.client.commit(request, metadata=METADATA)
            except exceptions.InvalidArgument:
                refused += 1
        return refused

    def run(self, command: str, path: Path, project: str, *options: str) -> None:
        words = [BINARY, command, str(path), "--address", self.address, "--project", project, *options]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, env=environment_of_a_child())
        assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Side, Side]]:
    try:
        with emulator() as there, hearth() as here:
            yield Side(there), Side(here)
    except Unavailable as reason:
        pytest.skip(str(reason))


def test_random_documents_come_back_equal(sides: tuple[Side, Side], tmp_path: Path) -> None:
    google, own = sides
    first = int(os.environ.get("HEARTH_TEST_SEED", str(random.randrange(10**6))))
    documents = refused = 0
    for seed in range(first, first + SEEDS):
        where = f"HEARTH_TEST_SEED={seed}"
        source = f"source{seed}"
        refused += google.fill(source, Maker(str(seed), source))
        before = google.contents(source)
        documents += len(before)
        for form in ("google", "ndjson"):
            # Lines don't say which database they are of, so that references stay.
            middle, last = f"middle{seed}{form}", f"last{seed}{form}"
            if form == "ndjson":
                wanted_here = wanted_there = before
            else:
                wanted_here, wanted_there = moved_all(before, source, middle), moved_all(before, source, last)
            out, back = tmp_path / f"{seed}-{form}", tmp_path / f"{seed}-{form}-back"
            google.run("export", out, source, "--format", form)
            own.run("import", out, middle)
            assert own.contents(middle) == wanted_here, where
            own.run("export", back, middle, "--format", form)
            google.run("import", back, last)
            assert google.contents(last) == wanted_there, where
    print(f"{SEEDS} seeds from {first} on, {documents} documents; the emulator refused {refused} others")
    assert documents > 5 * SEEDS
