"""Data bundles: the tool's build and inspect compared with Google's Python builder and reader, and the server's
`/bundles`.
"""

from __future__ import annotations

import datetime
import gzip
import http.client
import json
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.cloud import firestore
from google.cloud.firestore_bundle import FirestoreBundle
from google.cloud.firestore_v1._helpers import deserialize_bundle
from google.cloud.firestore_v1.base_query import FieldFilter

from support.patience import PATIENCE
from support.program import BINARY, Program, environment_of_a_child, program

pytestmark = pytest.mark.skipif(not BINARY, reason="HEARTH_BINARY does not name the program")


# Support


def tool(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [BINARY, "bundle", *map(str, words)],
        capture_output=True,
        timeout=PATIENCE,
        env=environment_of_a_child(),
        cwd=folder,
    )


def build(*words: str | Path) -> bytes:
    """The bundle that `hearth bundle build` writes to standard output."""
    ended = tool("build", *words)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout


def inspect(bundle: bytes, folder: Path, code: int = 0) -> dict[str, Any]:
    file = folder / "inspected.bundle"
    file.write_bytes(bundle)
    ended = tool("inspect", file, "--json")
    assert ended.returncode == code, ended.stderr.decode()
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def elements(bundle: bytes) -> list[dict[str, Any]]:
    """The JSON of a bundle's elements, split by their lengths in bytes."""
    found = []
    position = 0
    while position < len(bundle):
        brace = bundle.index(b"{", position)
        end = brace + int(bundle[position:brace])
        found.append(json.loads(bundle[brace:end].decode()))
        position = end
    assert position == len(bundle)
    return found


CITIES: dict[str, dict[str, Any]] = {
    "ber": {"name": "Berlin", "pop": 3_878_100, "tags": ["capital", "river"], "at": {"lat": 52.5, "empty": {}}},
    "zrh": {"name": "Zürich 🏔", "pop": 443_037, "tags": [], "bytes": b"\x00\xff", "none": None},
    "par": {"name": "Paris", "pop": 2_102_650, "ratio": 0.5, "open": True, "where": firestore.GeoPoint(48.8, 2.3)},
    "osl": {"name": 'Oslo "quoted"\n', "pop": 717_710, "nan": float("inf")},
}


@pytest.fixture
def cities(db: firestore.Client) -> firestore.CollectionReference:
    collection = db.collection("cities")
    for name, fields in CITIES.items():
        collection.document(name).set(fields)
    db.document("cities/ber/parks/tiergarten").set({"city": collection.document("ber"), "area": 210})
    return collection


# Ours, read by Google's reader


def test_google_reads_what_hearth_builds(db: firestore.Client, cities: Any, address: str, project: str) -> None:
    bundle = build(
        *("--host", address, "--project", project, "--name", "cities-v1"),
        *("--query", "all=cities", "--query", "parks=*parks", "--document", "cities/ber"),
        *("--query", 'big={"collection": "cities", "conditions": [{"where": ["pop", ">", 1000000]}]}'),
    )
    read = deserialize_bundle(bundle, db)
    assert read.name == "cities-v1"
    assert set(read.named_queries) == {"all", "parks", "big"}
    documents = {path.rsplit("/", 1)[1]: document for path, document in read.documents.items()}
    assert set(documents) == {*CITIES, "tiergarten"}
    for name, fields in CITIES.items():
        stored = cities.document(name).get()
        read_back = documents[name].snapshot.to_dict()
        assert read_back == stored.to_dict()
        assert set(read_back) == set(fields)
        assert documents[name].snapshot.update_time == stored.update_time
        assert documents[name].snapshot.create_time == stored.create_time
    assert list(documents["ber"].metadata.queries) == ["all", "big"]
    assert list(documents["zrh"].metadata.queries) == ["all"]
    assert documents["tiergarten"].snapshot.to_dict()["city"].id == "ber"
    # One read time for all data.
    times = {str(query.read_time) for query in read.named_queries.values()}
    times |= {str(document.metadata.read_time) for document in read.documents.values()}
    assert len(times) == 1
    # Google's builder writes it once more, and ours reads that.
    assert len(elements(read.build().encode())) == len(elements(bundle))


def test_totals_and_form(cities: Any, address: str, project: str, tmp_path: Path) -> None:
    bundle = build(
        *("--host", address, "--project", project, "--name", "x"),
        *("--query", "all=cities", "--document", "cities/none"),
    )
    first, *rest = elements(bundle)
    metadata = first["metadata"]
    head = len(json.dumps(first, separators=(",", ":")))
    assert metadata["totalBytes"] == len(bundle) - head - len(str(head))
    assert metadata["totalDocuments"] == 5
    assert metadata["version"] == 1
    kinds = [next(iter(element)) for element in rest]
    assert kinds == ["namedQuery", "documentMetadata"] + ["documentMetadata", "document"] * 4
    assert rest[1]["documentMetadata"]["exists"] is False
    assert metadata["createTime"] == rest[0]["namedQuery"]["readTime"]
    found = inspect(bundle, tmp_path)
    assert found["loadable"] and found["problems"] == []
    assert found["totalBytes"] == metadata["totalBytes"]
    assert found["queries"][0]["documents"] == 4


def test_limit_to_last_keeps_the_users_query(cities: Any, address: str, project: str) -> None:
    query = {
        "collection": "cities",
        "conditions": [{"orderBy": ["pop", "asc"]}, {"startAt": [500_000]}, {"limitToLast": 2}],
    }
    bundle = build(
        *("--host", address, "--project", project, "--name", "x", "--query", f"last={json.dumps(query)}")
    )
    parts = elements(bundle)
    bundled = parts[1]["namedQuery"]["bundledQuery"]
    assert bundled["limitType"] == "LAST"
    structured = bundled["structuredQuery"]
    assert structured["orderBy"] == [{"field": {"fieldPath": "pop"}, "direction": "ASCENDING"}]
    assert structured["startAt"] == {"values": [{"integerValue": "500000"}], "before": True}
    assert structured["limit"] == 2
    names = [part["document"]["name"].rsplit("/", 1)[1] for part in parts if "document" in part]
    assert names == ["par", "ber"]


def test_a_data_folder_gives_the_same_as_a_server(tmp_path: Path) -> None:
    root = "/v1/projects/demo-hearth/databases/(default)/documents"
    with program(tmp_path) as server:
        for number in range(30):
            body = {"fields": {"n": {"integerValue": str(number)}, "m": {"mapValue": {}}}}
            assert server.send("PATCH", f"{root}/c/d{number:02}", body)[0] == 200
        words = ["--name", "x", "--query", "all=c", "--document", "c/d05", "--document", "c/none"]
        remote = build("--host", server.address, *words)
        busy = tool("build", "--data", tmp_path / "hearth-data", *words)
        assert busy.returncode == 73, "a server uses the folder"
        assert server.terminate()[0] == 0
    local = build("--data", tmp_path / "hearth-data", *words)

    def without_times(bundle: bytes) -> list[Any]:
        for part in (parts := elements(bundle)):
            for member in part.values():
                for name in ["readTime", "totalBytes"] + (["createTime"] if "metadata" in part else []):
                    member.pop(name, None)
        return parts

    assert without_times(remote) == without_times(local)
    assert build("--data", tmp_path / "hearth-data", *words) != b""


def test_definition_files_and_outputs(cities: Any, address: str, project: str, tmp_path: Path) -> None:
    definition = {
        "id": "from-file",
        "project": project,
        "documents": ["cities/osl"],
        "queries": {
            "named": {
                "parent": "cities/ber",
                "structuredQuery": {"from": [{"collectionId": "parks"}], "limit": 3},
                "limitType": "FIRST",
            },
            "any": {
                "collection": "cities",
                "conditions": [
                    {"where": ["tags", "array-contains-any", ["river", "sea"]]},
                    {"where": ["none", "!=", {"timestampValue": "2024-01-01T00:00:00Z"}]},
                ],
            },
            "byName": {"collection": "cities", "conditions": [{"where": ["__name__", ">=", "par"]}]},
            "null": {"collection": "cities", "conditions": [{"where": ["none", "==", None]}]},
        },
    }
    file = tmp_path / "definition.json"
    file.write_text(json.dumps(definition))
    output = tmp_path / "out.bundle"
    ended = tool("build", "--definition", file, "--host", address, "-o", output)
    assert ended.returncode == 0, ended.stderr.decode()
    assert b"documents" in ended.stdout
    found = inspect(output.read_bytes(), tmp_path)
    assert found["metadata"]["id"] == "from-file"
    assert [query["name"] for query in found["queries"]] == ["named", "any", "byName", "null"]
    assert [query["documents"] for query in found["queries"]] == [1, 0, 2, 1]
    text = tool("inspect", output).stdout.decode()
    assert "from-file" in text and "cities/osl" in text and "can be loaded" in text


def test_building_over_tls(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    (tmp_path / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(key.private_bytes(*form))
    with program(tmp_path, "--memory", "--tls-cert", "cert.pem", "--tls-key", "key.pem") as server:
        words = ["--host", f"localhost:{server.port}", "--query", "all=c", "--name", "x"]
        bundle = build(*words, "--tls-ca", tmp_path / "cert.pem")
        assert elements(bundle)[0]["metadata"]["totalDocuments"] == 0
        assert tool("build", *words, "--tls").returncode == 69, "nobody vouches for the certificate"
        assert tool("build", *words).returncode == 69, "it speaks TLS only"


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["build"], 64, "Nothing is named"),
        (["build", "--query", "a=c", "--name", "x"], 64, "--host or a data folder"),
        (["build", "--query", "c", "--name", "x"], 64, "NAME=QUERY"),
        (["build", "--query", "a=c", "--host", "127.0.0.1:1"], 64, "id"),
        (["build", "--query", "a=c", "--name", "x", "--host", "127.0.0.1:1"], 69, "Cannot reach"),
        (["build", "--query", "a=c/d", "--name", "x", "--host", "127.0.0.1:1"], 64, "not the path of a collection"),
        (["build", "--query", "a=c", "--query", "a=d", "--name", "x", "--host", "h:1"], 64, "two queries"),
        (["build", "--document", "c", "--name", "x", "--host", "h:1"], 64, "lacks"),
        (["build", "--query", 'a={"collection":"c","conditions":[{"offset":1}]}', "--name", "x"], 64, "offset"),
        (["build", "--query", 'a={"collection":"c","conditions":[{"limitToLast":1}]}', "--name", "x"], 64, "order"),
        (["build", "--query", 'a={"collection":"c","conditions":[{"where":["a","~",1]}]}', "--name", "x"], 64, "operator"),
        (["build", "--query", 'a={"collection":"c","condition":[]}', "--name", "x"], 64, 'did you mean "conditions"'),
        (["build", "--query", "a=c", "--name", "x", "--data", "/nowhere/at/all"], 73, "/nowhere/at/all"),
        (["build", "--definition", "/nowhere.json", "--host", "h:1"], 78, "/nowhere.json is not there"),
        (["inspect"], 64, "Expected"),
        (["inspect", "/nowhere.bundle"], 73, "Cannot read"),
        (["load"], 64, "Expected"),
    ],
)
def test_wrong_usage(words: list[str], code: int, complaint: str, tmp_path: Path) -> None:
    ended = tool(*words, folder=tmp_path)
    assert (ended.returncode, complaint in ended.stderr.decode()) == (code, True), ended.stderr.decode()


# Google's, read by ours


def test_hearth_reads_what_google_builds(db: firestore.Client, cities: Any, project: str, tmp_path: Path) -> None:
    bundle = FirestoreBundle("googles")
    for name in CITIES:
        bundle.add_document(cities.document(name).get())
    found = inspect(bundle.build().encode(), tmp_path)
    assert found["loadable"], found["problems"]
    assert found["metadata"]["id"] == "googles"
    assert [document["name"].rsplit("/", 1)[1] for document in found["documents"]] == list(CITIES)
    assert all(document["exists"] for document in found["documents"])


def test_googles_queries_are_shown_and_their_parent_is_told_of(
    db: firestore.Client, cities: Any, tmp_path: Path
) -> None:
    """Google's Python builder writes a query's name in the field of its parent: no client can load that."""
    bundle = FirestoreBundle("googles")
    bundle.add_named_query("big", cities.where(filter=FieldFilter("pop", ">", 1_000_000)).order_by("pop").limit(9))
    found = inspect(bundle.build().encode(), tmp_path, code=1)
    assert not found["loadable"]
    assert [problem["code"] for problem in found["problems"]] == ["DATA_LOSS"]
    assert "big" in found["problems"][0]["message"]
    (query,) = found["queries"]
    assert query["bundledQuery"]["structuredQuery"]["limit"] == 9
    assert query["documents"] == 2
    assert len(found["documents"]) == 2
    # With the parent corrected all of it loads.
    mended = b""
    for part in elements(bundle.build().encode()):
        if "namedQuery" in part:
            part["namedQuery"]["bundledQuery"]["parent"] = db._database_string + "/documents"
        text = json.dumps(part).encode()
        mended += str(len(text)).encode() + text
    assert inspect(mended, tmp_path)["loadable"]


def test_damage_is_told(cities: Any, address: str, project: str, tmp_path: Path) -> None:
    bundle = build("--host", address, "--project", project, "--name", "x", "--query", "all=cities")
    cut = inspect(bundle[:-1], tmp_path, code=1)
    assert cut["problems"][0]["code"] == "DATA_LOSS"
    parts = elements(bundle)
    text = b"".join(
        str(len(raw)).encode() + raw for raw in (json.dumps(part).encode() for part in parts if "namedQuery" not in part)
    )
    assert inspect(text, tmp_path)["loadable"]
    fewer = inspect(bundle + bundle[: bundle.index(b"}}") + 2], tmp_path, code=1)
    assert "metadata twice" in fewer["problems"][0]["message"]


# The server's route


ROOT = "/v1/projects/demo-hearth/databases/(default)/documents"
SAVED = "/v1/projects/demo-hearth/databases/(default)/bundles"
SECRET = "a-secret-that-is-long-enough-0123456789"
DEFINITIONS = {
    "open": {"queries": {"all": {"collection": "c"}}, "public": True},
    "aged": {"queries": {"all": {"collection": "c"}}, "public": True, "maxAge": 600, "sharedMaxAge": 60},
    "closed": {"id": "closed-v1", "queries": {"all": {"collection": "c"}}, "maxAge": 5},
    "two": {"queries": {"a": {"collection": "c"}, "b": {"collection": "d"}}, "public": True},
}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


def fetch(server: Program, path: str, method: str = "GET", **headers: str) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def put(server: Program, path: str, number: int) -> None:
    status, body = server.send("PATCH", f"{ROOT}/{path}", {"fields": {"n": {"integerValue": str(number)}}})
    assert status == 200, body


def numbers(bundle: bytes) -> dict[str, int]:
    return {
        part["document"]["name"].split("/documents/")[1]: int(part["document"]["fields"]["n"]["integerValue"])
        for part in elements(bundle)
        if "document" in part
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "hearth.json").write_text(json.dumps({"bundles": DEFINITIONS}))
    with program(tmp_path) as started:
        for number in range(5):
            put(started, f"c/d{number}", number)
        yield started


def test_a_bundle_is_served_and_follows_the_data(server: Program, tmp_path: Path) -> None:
    first = fetch(server, "/bundles/open")
    assert first.status == 200
    assert first.headers["content-type"] == "application/octet-stream"
    assert first.headers["cache-control"] == "public, no-cache"
    assert int(first.headers["content-length"]) == len(first.body)
    assert numbers(first.body) == {f"c/d{number}": number for number in range(5)}
    assert inspect(first.body, tmp_path)["metadata"]["id"] == "open"
    again = fetch(server, "/bundles/open")
    assert (again.body, again.headers["etag"]) == (first.body, first.headers["etag"]), "nothing has changed"
    unchanged = fetch(server, "/bundles/open", if_none_match=f'"x", {first.headers["etag"]}')
    assert (unchanged.status, unchanged.body) == (304, b"")
    assert unchanged.headers["etag"] == first.headers["etag"]
    put(server, "c/d0", 100)
    changed = fetch(server, "/bundles/open", if_none_match=first.headers["etag"])
    assert changed.status == 200
    assert numbers(changed.body)["c/d0"] == 100
    assert changed.headers["etag"] != first.headers["etag"]


def test_head_gzip_and_errors(server: Program) -> None:
    plain = fetch(server, "/bundles/open")
    head = fetch(server, "/bundles/open", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(plain.body))
    assert head.headers["etag"] == plain.headers["etag"]
    zipped = fetch(server, "/bundles/open", accept_encoding="br, gzip;q=0.8")
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.headers["etag"] != plain.headers["etag"], "two forms have two tags"
    assert "accept-encoding" in zipped.headers["vary"]
    assert gzip.decompress(zipped.body) == plain.body
    assert len(zipped.body) < len(plain.body)
    assert "content-encoding" not in fetch(server, "/bundles/open", accept_encoding="gzip;q=0, identity").headers
    assert fetch(server, "/bundles/open", if_none_match="*").status == 304
    assert fetch(server, "/bundles/nothing").status == 404
    assert fetch(server, "/bundles/a%2Fb").status == 404
    assert fetch(server, "/bundles/p/d/nothing").status == 404
    assert fetch(server, "/bundles/open", "POST").status == 405
    origin = fetch(server, "/bundles/open", origin="https://app.localhost")
    assert origin.headers["access-control-allow-origin"] == "https://app.localhost"


def test_within_its_age_a_bundle_is_not_made_anew(server: Program) -> None:
    first = fetch(server, "/bundles/aged")
    assert first.headers["cache-control"] == "public, max-age=600, s-maxage=60"
    assert first.headers["age"] == "0"
    put(server, "c/d0", 100)
    again = fetch(server, "/bundles/aged")
    assert again.body == first.body
    assert numbers(fetch(server, "/bundles/open").body)["c/d0"] == 100


def test_definitions_are_saved_and_deleted(server: Program, tmp_path: Path) -> None:
    assert server.send("GET", SAVED) == (200, b"{}")
    definition = {"queries": {"top": {"collection": "c", "conditions": [{"orderBy": ["n", "desc"]}, {"limit": 2}]}}}
    status, body = server.send("PUT", f"{SAVED}/top", definition)
    assert (status, json.loads(body)["definition"]) == (200, definition)
    assert numbers(fetch(server, "/bundles/top").body) == {"c/d4": 4, "c/d3": 3}
    long = fetch(server, "/bundles/demo-hearth/(default)/top")
    assert numbers(long.body) == {"c/d4": 4, "c/d3": 3}
    definition["queries"]["top"]["conditions"][1] = {"limit": 1}
    assert server.send("PUT", f"{SAVED}/top", definition)[0] == 200
    assert numbers(fetch(server, "/bundles/top").body) == {"c/d4": 4}
    assert json.loads(server.send("GET", f"{SAVED}/top")[1])["definition"] == definition
    assert [entry["name"] for entry in json.loads(server.send("GET", SAVED)[1])["bundles"]] == [f"{SAVED[4:]}/top"]
    for wrong in [{}, {"queries": {"a": {"collection": "c/d"}}}, {"documents": ["c/d"], "size": 1}, {"documents": [1]}]:
        status, body = server.send("PUT", f"{SAVED}/wrong", wrong)
        assert (status, json.loads(body)["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert server.send("PUT", f"{SAVED}/a%20b", definition)[0] == 400
    # It is durable.
    assert server.terminate()[0] == 0
    with program(tmp_path) as second:
        assert numbers(fetch(second, "/bundles/top").body) == {"c/d4": 4}
        assert second.send("DELETE", f"{SAVED}/top")[0] == 200
        assert second.send("DELETE", f"{SAVED}/top")[0] == 404
        assert fetch(second, "/bundles/top").status == 404


def test_who_may_fetch_and_define(tmp_path: Path) -> None:
    (tmp_path / "owner.secret").write_text(SECRET)
    (tmp_path / "reader.secret").write_text(SECRET[::-1])
    credentials = [
        {"name": "owner", "secretFile": "owner.secret"},
        {"name": "reader", "secretFile": "reader.secret", "scope": "read-only"},
    ]
    (tmp_path / "hearth.json").write_text(json.dumps({"bundles": DEFINITIONS, "auth": {"credentials": credentials}}))
    owner, reader = f"Bearer {SECRET}", f"Bearer {SECRET[::-1]}"
    with program(tmp_path, "--no-emulator") as closed:
        assert fetch(closed, "/bundles/open").status == 200
        assert fetch(closed, "/bundles/open", authorization="Bearer nonsense").status == 200
        assert fetch(closed, "/bundles/closed").status == 403
        assert fetch(closed, "/bundles/closed", authorization="Bearer nonsense").status == 401
        answer = fetch(closed, "/bundles/closed", authorization=reader)
        assert (answer.status, answer.headers["cache-control"]) == (200, "private, max-age=5")
        assert elements(answer.body)[0]["metadata"]["id"] == "closed-v1"

        def define(method: str, token: str | None) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", closed.port, timeout=PATIENCE)
            headers = {"authorization": token} if token else {}
            connection.request(method, f"{SAVED}/x", json.dumps({"documents": ["c/d0"]}), headers)
            status = connection.getresponse().status
            connection.close()
            return status

        assert [define("PUT", token) for token in [None, reader, owner]] == [403, 403, 200]
        assert [define("GET", token) for token in [None, reader, owner]] == [403, 200, 200]
        assert fetch(closed, "/bundles/x").status == 403
        assert fetch(closed, "/bundles/x", authorization=owner).status == 200
        assert [define("DELETE", token) for token in [None, reader, owner]] == [403, 403, 200]
        words = ["--host", closed.address, "--query", "all=c", "--name", "x"]
        assert tool("build", *words).returncode == 1
        build(*words, "--credential", tmp_path / "owner.secret")


def test_a_bundle_shows_one_moment(server: Program) -> None:
    """Two collections that only change together are consistent in every bundle, during other changes."""

    def commit(number: int) -> None:
        writes = [
            {"update": {"name": f"{ROOT[4:]}/{path}", "fields": {"n": {"integerValue": str(number)}}}}
            for path in ["c/d0", "d/twin"]
        ]
        assert server.send("POST", f"{ROOT}:commit", {"writes": writes})[0] == 200

    commit(0)
    ended = threading.Event()

    def write() -> None:
        for number in range(1, 60):
            commit(number)
        ended.set()

    def read() -> list[Answer]:
        answers = [fetch(server, "/bundles/two")]
        while not ended.is_set() and len(answers) < 2000:
            answers.append(fetch(server, "/bundles/two"))
        return answers

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(3)]
        pool.submit(write).result()
        answers = [answer for reader in readers for answer in reader.result()]
    seen = set()
    for answer in answers:
        assert answer.status == 200
        found = numbers(answer.body)
        assert found["c/d0"] == found["d/twin"]
        seen.add(found["c/d0"])
    assert len(seen) > 1


def test_a_large_bundle_streams(server: Program, tmp_path: Path) -> None:
    """Larger than the memory buffer, to a client that reads slowly."""
    text = "0123456789abcdef" * 4096
    for start in range(0, 300, 50):
        writes = [
            {
                "update": {
                    "name": f"{ROOT[4:]}/c/large{number:04}",
                    "fields": {"n": {"integerValue": str(number)}, "text": {"stringValue": text}},
                }
            }
            for number in range(start, start + 50)
        ]
        assert server.send("POST", f"{ROOT}:commit", {"writes": writes})[0] == 200
    answer = fetch(server, "/bundles/open")
    assert len(answer.body) > 300 * len(text)
    assert len(numbers(answer.body)) == 305
    assert gzip.decompress(fetch(server, "/bundles/open", accept_encoding="gzip").body) == answer.body
    # A client that disconnects does not affect the others.
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", "/bundles/open")
    assert len(connection.getresponse().read(100_000)) == 100_000
    connection.close()
    with ThreadPoolExecutor(8) as pool:
        bodies = list(pool.map(lambda _: fetch(server, "/bundles/open").body, range(8)))
    assert set(bodies) == {answer.body}


@pytest.mark.parametrize(
    ("bundles", "complaint"),
    [
        ({"a b": {"documents": ["c/d"]}}, "letters, digits"),
        ({"a": {"documents": ["c"]}}, "bundles.a.documents[0]"),
        ({"a": {"queries": {"q": {"collection": "c", "conditions": [{"orderby": "n"}]}}}}, 'did you mean "orderBy"'),
        ({"a": {}}, "queries or documents"),
        ({"a": {"documents": ["c/d"], "maxAge": -1}}, "bundles.a.maxAge"),
    ],
)
def test_wrong_definitions_are_told_at_the_start(bundles: Any, complaint: str, tmp_path: Path) -> None:
    (tmp_path / "hearth.json").write_text(json.dumps({"bundles": bundles}))
    process = Program.spawn(tmp_path)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 78
    assert complaint in log
