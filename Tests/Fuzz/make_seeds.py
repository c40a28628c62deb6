"""Writes the seeds that every fuzz target begins with: small messages that reach into each corner.

`cd Tests/Python && python ../Fuzz/make_seeds.py`; needs what the other Python tests need. What the fuzzer has found is
kept beside them, under names that begin with `found-`.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "Python"))

from google.protobuf import json_format  # noqa: E402

from support.wire import METHODS, message_class, parse  # noqa: E402

DATABASE = "projects/p/databases/(default)"
ROOT = f"{DATABASE}/documents"
VALUES = {
    "null": {"nullValue": None},
    "boolean": {"booleanValue": True},
    "integer": {"integerValue": "9007199254740993"},
    "negative": {"integerValue": "-9223372036854775808"},
    "double": {"doubleValue": -0.5},
    "nan": {"doubleValue": "NaN"},
    "limit": {"doubleValue": 9.223372036854775e18},
    "time": {"timestampValue": "2024-02-29T23:59:59.123456Z"},
    "string": {"stringValue": "a\0é😀"},
    "bytes": {"bytesValue": "AP8B"},
    "reference": {"referenceValue": f"{ROOT}/c/__id7__"},
    "point": {"geoPointValue": {"latitude": -90, "longitude": 180}},
    "array": {"arrayValue": {"values": [{"integerValue": "1"}, {"stringValue": ""}]}},
    "map": {"mapValue": {"fields": {"a": {"nullValue": None}, "b": {"mapValue": {"fields": {}}}}}},
    "vector": {
        "mapValue": {
            "fields": {
                "__type__": {"stringValue": "__vector__"},
                "value": {"arrayValue": {"values": [{"doubleValue": 1.5}, {"doubleValue": "Infinity"}]}},
            }
        }
    },
    "long": {"stringValue": "x" * 400},
}
FILTER = {"fieldFilter": {"field": {"fieldPath": "a.`b c`"}, "op": "ARRAY_CONTAINS_ANY", "value": VALUES["array"]}}
QUERY = {
    "from": [{"collectionId": "c", "allDescendants": True}],
    "where": {"compositeFilter": {"op": "OR", "filters": [FILTER, {"unaryFilter": {"field": {"fieldPath": "n"}, "op": "IS_NAN"}}]}},
    "orderBy": [{"field": {"fieldPath": "a"}, "direction": "DESCENDING"}, {"field": {"fieldPath": "__name__"}}],
    "startAt": {"values": [VALUES["integer"]], "before": True},
    "offset": 3,
    "limit": 7,
}
WRITES = [
    {"update": {"name": f"{ROOT}/c/d", "fields": VALUES}, "updateMask": {"fieldPaths": ["null", "`a b`"]}},
    {"delete": f"{ROOT}/c/d", "currentDocument": {"updateTime": "2024-01-01T00:00:00Z"}},
    {
        "update": {"name": f"{ROOT}/c/e"},
        "updateTransforms": [
            {"fieldPath": "t", "setToServerValue": "REQUEST_TIME"},
            {"fieldPath": "i", "increment": VALUES["integer"]},
            {"fieldPath": "u", "appendMissingElements": {"values": [VALUES["double"]]}},
        ],
    },
]
REQUESTS = {
    "commit": ("Commit", {"database": "projects/p/databases/(default)", "writes": WRITES, "transaction": "AQI="}),
    "query": ("RunQuery", {"parent": ROOT, "structuredQuery": QUERY, "readTime": "2024-01-01T00:00:00.5Z"}),
    "count": (
        "RunAggregationQuery",
        {
            "parent": ROOT,
            "structuredAggregationQuery": {
                "structuredQuery": QUERY,
                "aggregations": [{"alias": "n", "count": {"upTo": "5"}}, {"sum": {"field": {"fieldPath": "a"}}}],
            },
        },
    ),
    "get": ("BatchGetDocuments", {"documents": [f"{ROOT}/c/d"], "newTransaction": {"readOnly": {}}}),
    "list": ("ListDocuments", {"parent": ROOT, "collectionId": "c", "orderBy": "a desc, b", "mask": {"fieldPaths": ["a"]}}),
}
HEADS = {
    "get": b"GET /v1/x?a=b HTTP/1.1\r\nHost: h\r\n\r\n",
    "length": b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "chunks": b"POST / HTTP/1.1\r\nhost:h\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\nGET / HT",
    "old": b"\r\nGET http://h:1/p?q HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
    "expect": b"PUT /a%20b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
    "both": b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded": b"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n",
    "bare": b"GET / HTTP/1.1\nHost: h\n\n",
    "options": b"OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
    "preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "frames": b"\0\0\0\0\3abc\1\0\0\0\2de\0\0\0\4\1",
}

# Rules of the Realtime Database: documents, expressions, patterns and paths.
DATABASE_RULES = {
    "document": '// rules\n{ "rules": { ".read": "auth != null && auth.uid == \'a\'", /* none */ ".write": true,\n  "items": { ".indexOn": ["a/b", ".value"], "$id": { ".validate": "newData.hasChildren([\'n\', \'s\'])",\n    "n": { ".validate": "newData.isNumber() && newData.val() >= data.val() + 1" }, "$other": { ".validate": false, }, }, }, } }',
    "nested": '{"rules":{"a":{"$x":{"b":{"$y":{".read":"$x == $y","$z":{}}}}},"\\u00e4\\ud83d\\ude00":{}}}',
    "query": "query.orderByChild == 'owner/id' && query.equalTo == auth.uid && query.limitToFirst <= 10 || query.orderByKey",
    "texts": 'newData.val().replace(\'a\', $id + 1.5e3).toLowerCase().contains(\'\\u00e4\\n\') ? \'a\'.length == -1 : data.child(\'s\').val().beginsWith("x")',
    "members": "auth.token['list'][0] == 'x' && auth.token[$id] === null || root.child('items/' + auth.uid).parent().hasChild('b')",
    "arithmetic": "(1 + 2 * 3 - 4 / 0 % 5 < now) == !(1e3 >= .5 || 1. != 2) && data['exists']()",
    "snapshots": "newData.child('o').getPriority() == null && data.hasChildren([]) && newData.hasChildren() && newData.parent().child('..').isString()",
    "pattern": "data.child('s').val().matches(/^(a|b)+[^x\\-z\\]]{2,3}\\s\\w.*\\/$/i)",
    "bare-pattern": '^[A-Z0-9._%+-]+@[a-z\\d-]+\\.([A-Z]{2,4}|x)$',
    "path": 'a/./../b@c/..//x.y/é',
}

# Sources of Security Rules, and conditions, which the entry point puts into a source.
RULES = {
    "source": """rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    function owns(data) { let uid = request.auth.uid; return uid == data.owner; }
    match /notes/{note} {
      allow read, delete: if owns(resource.data);
      allow write: if owns(request.resource.data) && request.resource.data.keys().hasOnly(['owner', 'text']);
      match /parts/{part=**} { allow list: if request.query.limit <= 10 }
    }
    match /{path=**}/posts/{post} { allow list: if resource.data.open == true; }
  }
}""",
    "version1": "service cloud.firestore { match /a/{b=**} { allow get } } service firebase.storage { match /b/{c} {} }",
    "logic": "a.b || !(1 in [1, null, 2.5,]) && request.auth != null ? resource == null : 'x' is string",
    "slices": "[1, 2, 3][0:2] == [1, 2] && 'abc'[1:] == 'bc' && {'k': {'l': -9223372036854775808}}.get(['k', 'l'], 0) < 1",
    "paths": "get(/databases/$(request.path[1])/documents/c/$(d[0])).data.a == 1 || exists(/a/{b}.bind({'b': 1}))",
    "texts": "'a\\u00e9\\ud83d\\ude00'.replace('(a)|b', '[$1]').split('[0-9]*').join(',').matches('.*') && b'\\xff\\101' != b\"a\"",
    "times": "request.time + duration.value(1, 'w') > timestamp.date(2020, 2, 29) && request.time.dayOfYear() % 7 / 2 == 1",
    "sets": "{'a': 1}.diff(resource.data).affectedKeys().union(['a'].toSet()).hasOnly(['a', 'b']) && debug(1.5) is float",
    "numbers": "math.round(-2.5) == int('-2') && string(1.0E) == float('1e400') || hashing.md5('a').toHexString() == ''",
    "found-path-member": "/a /b .data== /a/b",
}


def write(target: str, name: str, content: bytes) -> None:
    folder = Path(__file__).parent / target / "seeds"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def fields(value: object) -> bytes:
    return json_format.ParseDict({"fields": {"v": value}}, message_class("Document")()).SerializeToString(deterministic=True)


def frame(opcode: int, payload: bytes = b"", final: int = 1, reserved: int = 0, mask: bytes = b"\1\2\3\4") -> bytes:
    """A WebSocket frame; `mask` is empty for a server's."""
    head = bytes([final << 7 | reserved << 4 | opcode])
    bit = 0x80 if mask else 0
    head += bytes([bit | len(payload)]) if len(payload) < 126 else bytes([bit | 126, *len(payload).to_bytes(2, "big")])
    if not mask:
        return head + payload
    return head + mask + bytes(byte ^ mask[index & 3] for index, byte in enumerate(payload))


def websocket_seeds() -> dict[str, bytes]:
    """The first byte chooses the role and what was agreed on: see `WebSocketFuzzing`."""
    hello = bytes.fromhex("f248cdc9c90700")
    again = bytes.fromhex("f200110000")
    return {
        "text": b"\0" + frame(1, "aä€😀".encode()) + frame(9, b"p") + frame(2, bytes(130)) + frame(8, b"\x03\xe8ok"),
        "fragments": b"\0" + frame(1, b"a", 0) + frame(10, b"x") + frame(0, b"\xf0\x9f", 0) + frame(0, b"\x98\x80"),
        "deflate": b"\2" + frame(1, hello, 1, 4) + frame(1, hello[:3], 0, 4) + frame(9) + frame(0, hello[3:]),
        "takeover": b"\x0a" + frame(1, hello, 1, 4) + frame(1, again, 1, 4),
        "client": b"\7" + frame(1, hello, 1, 4, b"") + frame(2, bytes(200), mask=b"") + frame(8, mask=b""),
        "small": b"\x12" + frame(1, bytes.fromhex("4a4c1c05a360140c770000"), 1, 4) + frame(2, bytes(299)),
        "extensions": b"\0" + b'permessage-deflate; client_max_window_bits="10", a;b=c',
    }


def realtime_seeds() -> dict[str, bytes]:
    """Lines: see `RealtimeFuzzing`."""

    def request(number: int, action: str, body: object) -> str:
        return json.dumps({"t": "d", "d": {"r": number, "a": action, "b": body}})

    window = {"i": "n", "l": 2, "vf": "r"}
    rules = {"rules": {".read": "auth !== null", "a": {".write": True, ".indexOn": ["n"], ".validate": "newData.hasChildren()"}}}
    cases = {
        "listens": [
            "=a/b 1", request(1, "q", {"p": "/a", "h": ""}), request(2, "q", {"p": "/a", "q": window, "t": 3, "h": ""}),
            '=a {"x":{"n":1},"y":{"n":2},"z":{"n":3}}', ".", "=a/y/n 5", "=a/z null", request(3, "n", {"p": "a"}), "=a/x/n 9",
            request(4, "q", {"p": "a/x", "h": ""}), "=a/x/.priority 4", '{"t":"c","d":{"t":"p","d":{}}}',
        ],
        "writes": [
            request(1, "q", {"p": "", "h": ""}), request(2, "p", {"p": "c", "d": {".sv": "timestamp"}}),
            request(3, "m", {"p": "c", "d": {"a/b": 1, "d": {".value": 2, ".priority": "p"}}}), request(4, "g", {"p": "c", "q": {}}),
            request(5, "p", {"p": "c/n", "d": {".sv": {"increment": 2}}, "h": ""}), request(6, "p", {"p": "c/n", "d": 3, "h": "x"}),
            request(7, "s", {"c": {"sdk": 1}}),
        ],
        "wishes": [
            request(1, "o", {"p": "a/b", "d": 1}), request(2, "om", {"p": "a", "d": {"c": 2, "b/d": None}}),
            request(3, "oc", {"p": "a/b", "d": None}), request(3, "o", {"p": "e", "d": {".sv": {"increment": 1}}}), "x",
            request(1, "q", {"p": "", "h": ""}), request(2, "o", {"p": "", "d": None}),
        ],
        "rooms": [
            request(1, "q", {"p": "a", "q": {"i": ".key", "l": 2, "vf": "l"}, "t": 1, "h": ""}), request(2, "q", {"p": "a", "h": ""}),
            "=a/k 1", "!", "=a/j 2", "=a/l 3", request(3, "g", {"p": "a", "q": {"i": ".value", "sp": 2}}), "~", ".", "!", "=a null",
        ],
        "rights": [
            "r" + json.dumps(rules), request(1, "q", {"p": "a", "h": ""}), request(2, "gauth", {"cred": "owner", "authvar": {"uid": "u"}}),
            request(3, "q", {"p": "a", "q": window, "t": 1, "h": ""}), request(4, "p", {"p": "a", "d": 1}), request(5, "p", {"p": "a/b", "d": {"n": 1}}),
            request(6, "unauth", {}), request(7, "auth", {"cred": "owner"}), 'r{"rules":{}}', "=a/b/n 2",
        ],
        "hashes": [
            "=big {" + ",".join(f'"k{index}":"{"x" * 30}"' for index in range(40)) + "}",
            request(1, "q", {"p": "big", "h": "x", "ch": {"hs": ["a", "b"], "ps": ["k2"]}}), request(2, "q", {"p": "big/k1", "h": ""}),
        ],
    }
    return {name: "\n".join(lines).encode() for name, lines in cases.items()}

#: The query of a reader of the change feed, a line feed, the field `last-event-id`.
CHANGES = {
    "snapshot": "snapshot=true&wait=forever&before=false\n",
    "after": "after=AVrE4WkF04DBAAZhMekeDHE&limit=100\n",
    "since": "since=2026-11-22T19:17:23.279643Z&wait=0.5\n",
    "pattern": "document=restaurants/%7Br%7D/ratings/pre*&wait=604800\nAlrE4WkF04DBAAZhMekfIoM",
    "many": "document=a/b/**&snapshot=false&before=true\nAX__________f_________8",
    "token": "AQAAAAAAAAAAAAAAAAAAAAA\nAQAAAAAAAAAAAAAAAAAAAAA",
}


def main() -> None:
    for name, (method, body) in REQUESTS.items():
        message = parse(METHODS[method], body)
        write("protobuf", name, message.SerializeToString(deterministic=True))
        text = json_format.MessageToJson(message, indent=None, sort_keys=True).encode()
        write("json", name, text)
    for name, value in VALUES.items():
        write("protobuf", f"value-{name}", fields(value))
        write("indexkeys", f"value-{name}", b"\xff" + fields(value))
        for other in ("integer", "map", "string"):
            left, right = fields(value), fields(VALUES[other])
            place = -(-len(left) * 256 // (len(left) + len(right)))
            write("indexkeys", f"order-{name}-{other}", bytes([min(255, place)]) + left + right)
    write("indexkeys", "entry", bytes.fromhex("012063000102" "1961000100" "0FBFF0000000000000" "2064000102"))
    write("indexkeys", "key", bytes.fromhex("20630001" "02" "20640001" "02"))
    for name, head in HEADS.items():
        write("http1", name, head)
    base = f"/v1/{ROOT}"
    update = json_format.MessageToJson(parse(METHODS["Commit"], {"writes": WRITES}), indent=None).encode()
    query = json_format.MessageToJson(parse(METHODS["RunQuery"], {"structuredQuery": QUERY}), indent=None).encode()
    document = json_format.MessageToJson(json_format.ParseDict({"fields": VALUES}, message_class("Document")()), indent=None)
    write("rest", "get", f"GET {base}/c/d%20e?mask.fieldPaths=a&mask.fieldPaths=%60b%60&$alt=json".encode())
    write("rest", "list", f"GET {base}/c?pageSize=5&orderBy=a%20desc,b&showMissing=true&readTime=2024-01-01T00:00:00Z".encode())
    write("rest", "patch", f"PATCH {base}/c/d?updateMask.fieldPaths=a&currentDocument.exists=true\n".encode() + document.encode())
    write("rest", "commit", f"POST {base}:commit\n".encode() + update)
    write("rest", "batch", f"POST {base}:batchWrite\n".encode() + update)
    write("rest", "query", f"POST {base}/c/d:runQuery\n".encode() + query)
    write("rest", "partition", f"POST {base}:partitionQuery\n".encode() + query)
    stream_seeds()
    bundle_seeds()
    tree_seeds()
    sync_client_seeds()


def sync_client_seeds() -> None:
    """Choices of an app and of its hostile server: see `SyncClientFuzzing`."""

    def listen(query: int, metadata: int = 0, source: int = 0) -> bytes:
        return bytes([0, query, metadata, metadata, 0, source])

    def snapshot(target: int, time: int, *documents: tuple[int, int], token: int = 1) -> bytes:
        rows = b"".join(bytes([name, 1, 0, value, min(time, 4)]) for name, value in documents)
        return bytes([7, target, len(documents)]) + rows + bytes([time, token])

    def set_number(key: int, value: int) -> bytes:
        return bytes([2, 1, key, 5, value])

    def answer(results: int, time: int, stream: int = 0) -> bytes:
        return bytes([9, stream, 1, results]) + bytes([time, 0]) * results + bytes([time])

    def mismatch(target: int, count: int) -> bytes:
        return bytes([4, 5, target, count, 0])

    handshake = answer(0, 13, 1)
    restart = b"\x0d"
    seeds = {
        "shown": listen(0) + snapshot(0, 1, (0, 0), (1, 1)) + snapshot(0, 2, (0, 2)),
        "window": listen(1) + listen(2) + snapshot(0, 1, (0, 0), (1, 1), (2, 2)) + set_number(0, 3) + handshake + answer(1, 2),
        "limbo": listen(3) + snapshot(0, 1, (0, 1), (1, 2)) + restart + snapshot(0, 2, (0, 1)) + snapshot(4, 3),
        "filter": listen(0) + snapshot(0, 1, (0, 0), (1, 1)) + mismatch(0, 1) + snapshot(0, 2, (0, 0)),
        "written": set_number(0, 1) * 3 + handshake + answer(1, 1) + answer(2, 2) + answer(1, 9),
        "clocks": listen(0) + snapshot(0, 7, (0, 0)) + snapshot(0, 1, (0, 1)) + restart + snapshot(0, 2, (1, 1)),
        "values": listen(8) + b"".join(snapshot(0, 1 + n % 4, (n % 4, n)) for n in range(24)),
        "refused": listen(0) + listen(5) + bytes([4, 0, 2, 1, 0, 0, 1, 1, 8]) + set_number(0, 1) + handshake + bytes([12, 3]) + bytes([11, 3]),
        "users": listen(0, 1) + set_number(0, 1) + bytes([15, 3, 1]) + set_number(1, 1) + handshake + answer(1, 2) + bytes([15, 3, 0]),
        "calls": bytes([14, 0, 2, 0, 10]) + bytes(40) + bytes([14, 1, 2, 0, 0]) + bytes(40) + bytes([14, 2]) + bytes(40),
    }
    for name, content in seeds.items():
        for cache in (0, 3):
            write("syncclient", f"{name}-{cache}", bytes([cache]) + content)


def tree_seeds() -> None:
    """Trees of the Realtime Database (the client's, the server's, an update) and queries with what they are asked of."""
    people = '{"ann":{"age":7,"name":"Ann"},"bob":{"age":9.5,".priority":"b"},"10":true,"9":{"x":{}},"01":null,"c":"\\ud83d\\ude00"}'
    scalars = '[0,-0.0,1.5,1e21,9007199254740993,-9223372036854775808,true,false,"",{".value":1,".priority":"p"},[[null,2]]]'
    values = '{"n":{".sv":{"increment":1}},"t":{".value":{".sv":"timestamp"},".priority":{".sv":{"increment":0.5}}}}'
    update = '{"ann/age":8,"bob":null,"c/d/e":{"f":[1]},"10/.priority":"\\u00e4",".priority":3}'
    nested = '{"a":' * 31 + "[1]" + "}" * 31
    write("tree", "people", f"{people}\n{people.replace('7', '8')}\n{update}".encode())
    write("tree", "gone", f"{people}\nnull\n{update}".encode())
    write("tree", "scalars", f"{scalars}\n{people}\n{values}".encode())
    write("tree", "deferred", f"{values}\n{values}\n{values}".encode())
    write("tree", "nested", f"{nested}\n{nested.replace('1', '2')}\n".encode())
    write("tree", "priorities", b'{"!":1,"z":2,".priority":1}\n{"!":1,".priority":2,"-":{"a":1,".priority":3}}\n{"!":null,"-/a":null}')
    write("tree", "leaf", b'{".value":"x\\"y",".priority":3}\n7\n{"a/.priority":1,"a/b":null}')
    queries = {
        "unfiltered": "{}",
        "child": '{"i":"age","sp":7,"ep":9.5,"l":1,"vf":"r"}',
        "after": '{"i":"age","sp":7,"sn":"[MAX_NAME]","sin":false}',
        "key": '{"i":".key","sp":"10","ep":"c","ein":false}',
        "value": '{"i":".value","sp":null,"sn":"a","ep":true}',
        "priority": '{"sp":"b","sn":"bob","ep":"b","en":"bob"}',
        "rest": 'orderBy="age"&startAt=7,"ann"&endBefore=10&limitToFirst=2',
        "shallow": "shallow=true&startAfter=ann&limitToLast=1",
    }
    for name, query in queries.items():
        write("treequery", name, f"{query}\n{people}".encode())
        write("treequery", f"{name}-scalars", f"{query}\n{scalars}".encode())


def bundle_seeds() -> None:
    """Whole bundles, as the builders of several languages write them, and a few that are wrong."""

    def bundle(*parts: dict[str, object], indent: int | None = None) -> bytes:
        texts = [json.dumps(part, indent=indent, ensure_ascii=False).encode() for part in parts]
        return b"".join(str(len(text)).encode() + text for text in texts)

    def metadata(documents: int, time: object = "2024-05-01T10:00:10Z") -> dict[str, object]:
        return {"metadata": {"id": "x", "createTime": time, "version": 1, "totalDocuments": documents, "totalBytes": "9"}}

    def document(path: str, fields: object) -> list[dict[str, object]]:
        head = {"name": f"{ROOT}/{path}", "readTime": "2024-05-01T10:00:09Z", "exists": True, "queries": ["q"]}
        body = {"name": f"{ROOT}/{path}", "fields": fields, "createTime": "2024-05-01T10:00:01Z"}
        return [{"documentMetadata": head}, {"document": {**body, "updateTime": "2024-05-01T10:00:02.5Z"}}]

    missing = {"documentMetadata": {"name": f"{ROOT}/c/none", "readTime": {"seconds": "1714557610", "nanos": 5}}}
    named = {"parent": ROOT, "structuredQuery": {**QUERY, "limit": {"value": 2}}, "limitType": "LAST"}
    last = {"namedQuery": {"name": "q", "bundledQuery": named, "readTime": "2024-05-01T10:00:09Z"}}
    plain = {"parent": ROOT, "structuredQuery": {"from": [{"collectionId": "c"}]}}
    simple = {"namedQuery": {"name": "q", "bundledQuery": plain, "readTime": "2024-05-01T10:00:09Z"}}
    text = {"s": {"stringValue": "é\n"}, "m": {"mapValue": {}}, "a": {"arrayValue": {"values": [{"nullValue": None}]}}}
    write("bundle", "empty", bundle(metadata(0)))
    write("bundle", "missing", bundle(metadata(1, {"seconds": 7}), missing))
    write("bundle", "document", bundle(metadata(1), simple, *document("c/d", text)))
    write("bundle", "query", bundle(metadata(0), last))
    write("bundle", "indented", bundle(metadata(2), missing, *document("c/d", text), indent=2))
    write("bundle", "twice", bundle(metadata(1), *document("c/d", text), *document("c/d", {})))
    write("bundle", "cut", bundle(metadata(1), *document("c/d", text))[:-9])
    write("bundle", "liar", b"999999999999999" + bundle(metadata(0))[2:])
    for name, value in VALUES.items():
        write("bundle", f"value-{name}", bundle(metadata(1), *document("c/d", {"v": value})))


def target(number: int, **more: object) -> str:
    return json.dumps({"database": DATABASE, "addTarget": {"targetId": number, **more}})


def query(**more: object) -> dict[str, object]:
    return {"parent": ROOT, "structuredQuery": {"from": [{"collectionId": "c"}], **more}}


def stream_seeds() -> None:
    """Lines of requests and of what happens between them."""
    above = {"fieldFilter": {"field": {"fieldPath": "n"}, "op": "GREATER_THAN", "value": {"integerValue": "3"}}}
    window = {"orderBy": [{"field": {"fieldPath": "n"}, "direction": "DESCENDING"}], "limit": 2}
    remove = json.dumps({"database": DATABASE, "removeTarget": 2})
    listens = {
        "all": ["+c/a 1", target(2, query=query()), "+c/b 2", "+c/a 3", "-c/b"],
        "filter": [target(2, query=query(where=above)), "+c/a 1", "+c/a 5", "+c/a 2", remove],
        "window": ["+c/a 1", "+c/b 2", target(2, query=query(**window)), "+c/d 9", "-c/d", "+c/a 7"],
        "documents": [target(1, documents={"documents": [f"{ROOT}/c/a", f"{ROOT}/c/b"]}), "+c/a 1", "-c/a"],
        "resume": ["+c/a 1", target(2, query=query()), remove, "+c/b 2", "-c/a", target(2, query=query(), resumeToken="$T", expectedCount=1)],
        "count": ["+c/a 1", target(2, query=query()), remove, target(2, query=query(**window), resumeToken="$T", expectedCount=9)],
        "slow": ["!", target(2, query=query()), target(4, query=query(**window)), "+c/a 1", "+c/b 2", "z", "+c/d 3", "~", "+c/e 4"],
        "clear": [target(2, query=query()), target(4, query=query(where=above)), "+c/a 5", "z", "+c/b 6"],
        "once": ["+c/a 1", target(2, query=query(), once=True), "+c/b 1", target(2, query=query())],
        "time": ["+c/a 1", target(2, query=query(), readTime="2020-01-01T00:00:00Z"), target(4, query=query(), readTime="2120-01-01T00:00:00Z")],
        "wrong": [target(2), target(-1, query=query()), "{}", target(0, query=query()), target(3, query=query())],
    }  # fmt: skip
    for name, lines in listens.items():
        write("listen", name, "\n".join(lines).encode())
    begin = json.dumps({"database": DATABASE})
    update = {"update": {"name": f"{ROOT}/c/a", "fields": {"n": {"integerValue": "1"}}}}
    commit = json.dumps({"streamToken": "$T", "writes": [update, {"delete": f"{ROOT}/c/b"}]})
    failing = json.dumps({"streamToken": "$T", "writes": [{**update, "currentDocument": {"exists": False}}]})
    writes = {
        "commits": [begin, commit, commit, "h"],
        "failing": [begin, commit, failing, commit],
        "goodbye": [begin, json.dumps({"streamToken": "$T"}), "h"],
        "faulted": [begin, commit, commit, "f", commit],
        "early": [commit, begin],
        "tokens": [begin, json.dumps({"writes": [update]})],
        "resume": [json.dumps({"database": DATABASE, "streamId": "1", "streamToken": "MQ=="})],
    }
    for name, lines in writes.items():
        write("write", name, "\n".join(lines).encode())
    sessions = {
        "plain": ["Pcount=1&ofs=0&req0___data__=%7B%7D", "G", "Sa", "W", "Sb", "W", "A2", "Pcount=0", "C", "W"],
        "lost": ["G", "Sa", "Sb", "W", "Sc", "D", "Sd", "G", "W", "D", "L", "W"],
        "disorder": ["Pcount=1&ofs=2&req0___data__=c", "Pcount=2&ofs=0&req0___data__=a&req1___data__=b", "Pofs=1&req0___data__=b"],
        "headers": ["Pheaders=A%3Ab%0D%0AX%3A%0D%0A&count=2&ofs=0&req0___data__=%C3%A9+%2B&req1___data__="],
        "polls": ["L", "W", "L", "Sa", "W", "L", "Sb", "Sc", "W", "L", "W", "A9"],
    }
    for name, lines in sessions.items():
        write("webchannel", name, "\n".join(lines).encode())
    for name, text in RULES.items():
        write("rules", name, text.encode())
    for name, seed in websocket_seeds().items():
        write("websocket", name, seed)
    for name, seed in realtime_seeds().items():
        write("realtime", name, seed)
    for name, text in DATABASE_RULES.items():
        write("databaserules", name, text.encode())
    for name, text in CHANGES.items():
        write("changes", name, text.encode())
    trigger_seeds()


def trigger_seeds() -> None:
    """Triggers of hearth.json, patterns with a path below them, and answers of endpoints."""
    document = {"event": "google.cloud.firestore.document.v1.written", "document": "c/{id}", "url": "http://e:1/x"}
    reference = {"event": "google.firebase.database.ref.v1.written", "ref": "a/{b=x*y}", "url": "https://[::1]/?q"}
    retry = {"minBackoff": "1.5s", "maxBackoff": "2m", "maxAge": "7d", "maxAttempts": 3}
    triggers = {
        "plain": {"a": document, "b": reference},
        "full": {
            "a-1_": {
                **document,
                **{"project": "*", "database": "d", "mode": "structured", "content": "json", "order": "none"},
                **{"concurrency": 256, "timeout": "100ms", "retry": retry, "paused": True},
            }
        },
        "instance": {"a": {**reference, "instance": "x*y", "retry": False, "content": "json"}},
        "legacy": {"a": {**document, "event": "providers/cloud.firestore/eventTypes/document.write"}},
        "null": {"a": {**document, "project": None, "retry": None}},
        "secret": {"a": {**document, "secretFile": "../x"}},
        "wrong": {"a": {**document, "retry": {"maxBackoff": "1ms"}}},
    }
    for name, definitions in triggers.items():
        write("triggers", name, json.dumps(definitions).encode())
    write("triggers", "comments", b'{\n// x\n"a": /* y */ {"event": "e", "url": "http://e/", "url": 1}}')
    patterns = {
        "literal": ["a/b", "/a/b", "a/c", "a/b"],
        "parts": ["{a=x*}/{b=*y}", "x*z/p*y", "*/**", "xz/py"],
        "many": ["a/{m=**}", "{m=**}/b", "a/**/b", "a/{m=**}/{n}", "a/x/y/b"],
        "empty": ["**", "{m=**}", "*", ""],
        "wrong": ["a/**/b/**", "{a}/{a}", "a/x*y*z", "a//b", "./a", "{}", "a/b"],
        "bytes": ["é/{ü=*é}", "é/üé"],
    }
    for name, lines in patterns.items():
        write("patterns", name, "\n".join(lines).encode())
    head = b"HTTP/1.1 200 OK\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n"
    answers = {
        "length": head + b"content-length: 5\r\n\r\nwhole",
        "cut": head + b"content-length: 9\r\n\r\nshort",
        "chunks": chunked + b"3\r\nabc\r\n0\r\nx: y\r\n\r\n",
        "chunks-cut": chunked + b"3\r\nab",
        "end": b"HTTP/1.0 200\r\n\r\nuntil the end",
        "interim": b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + head + b"content-length: 0\r\n\r\n",
        "busy": b"HTTP/1.1 429 Slow\r\nretry-after: 7\r\nContent-Length: 0\r\n\r\n",
        "date": b"HTTP/1.1 503 No\r\nretry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n",
        "redirect": b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\nset-cookie: a=b\r\n\r\n",
        "empty": b"HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\n",
        "http2": b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64",
        "other": b"SSH-2.0-OpenSSH\r\n",
        "folded": head + b"x: a\r\n b\r\n\tc\r\n: d\r\ne\r\n\r\n",
        "compressed": head + b"content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",
    }
    for name, answer in answers.items():
        write("endpoint", name, answer)
    http2_seeds()
    stored_seeds()
    client_seeds()
    cache_seeds()
    export_seeds()


def http2_seeds() -> None:
    """Pieces and space for output, then frames; for the output the choices themselves."""

    def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
        return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    def fields(*pairs: tuple[str, str]) -> bytes:
        return b"".join(b"\0" + bytes([len(one)]) + one.encode() + bytes([len(two)]) + two.encode() for one, two in pairs)

    def head(stream: int, path: str, flags: int = 4, *more: tuple[str, str]) -> bytes:
        pseudo = ((":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", path))
        return frame(1, flags, stream, fields(*pseudo, *more))

    call = ("content-type", "application/grpc")
    message = b"\0\0\0\0\3abc"
    window = frame(8, 0, 0, (1 << 20).to_bytes(4, "big"))
    requests = {
        "get": head(1, "/", 5),
        "whole": head(1, "/whole") + frame(0, 1, 1, b"x" * 100),
        "pieces": head(1, "/") + frame(0, 0, 1, b"abc") + frame(0, 0, 1) + frame(0, 1, 1, b"def"),
        "call": head(1, "/p.S/M", 4, call) + frame(0, 1, 1, message + message),
        "reset": head(1, "/") + frame(0, 0, 1, b"abc") + frame(3, 0, 1, b"\0\0\0\x08") + head(3, "/", 5),
        "interleaved": head(1, "/") + head(3, "/p.S/M", 4, call) + frame(0, 0, 1, b"a") + frame(0, 1, 3, message) + frame(0, 1, 1),
        "continued": head(1, "/", 0)[:-4] + frame(9, 4, 1, fields(("a", "b"))),
        "control": frame(6, 0, 0, b"12345678") + window + frame(4, 0, 0, b"\0\4\0\0\0\0") + head(1, "/", 5) + frame(4, 1, 0),
        "padded": frame(1, 12, 1, b"\2" + fields((":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h")) + b"\0\0"),
        "trailers": head(1, "/") + frame(0, 0, 1, b"abc") + frame(1, 5, 1, fields(("x", "y"))),
        "goaway": head(1, "/") + frame(7, 0, 0, b"\0\0\0\0\0\0\0\0"),
    }
    for number, (name, content) in enumerate(requests.items()):
        write("http2", name, bytes([number % 6, number % 4]) + content)
    for number in range(12):
        write("http2output", f"choices{number}", random.Random(number).randbytes(40 << number % 6))


def stored_seeds() -> None:
    """What is done with a store, and changes of its records: see StoredFuzzing.swift."""
    greatest, least = b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7)
    changes = {
        "flip": bytes([0, 0, 3, 8, 0x80, 0, 0, 20, 3, 0x40]),
        "number": bytes([1, 0, 5, 0]) + greatest,
        "cut": bytes([2, 0, 1, 4, 2, 0, 9, 0]),
        "value": bytes([3, 0, 7, 5]) + b"\x01\x02abc",
        "key": bytes([4, 0, 2, 0, 0xFF, 4, 0, 30, 5, 1]),
        "record": bytes([5, 3, 7]) + b"version" + bytes([8]) + least + bytes([6, 0, 4]),
        "none": b"",
    }
    for target, uses in (("documentstore", 8), ("treestore", 4)):
        for use, (name, change) in enumerate(changes.items()):
            write(target, name, bytes([use % uses]) + change)


def client_seeds() -> None:
    """What servers answer to the Swift clients."""

    def frame(kind: int, flags: int, stream: int, content: bytes) -> bytes:
        return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content

    def field(name: bytes, value: bytes) -> bytes:
        return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value

    # The first byte: the size of the pieces, and whether SETTINGS come before.
    fields = b"\x88" + field(b"content-type", b"application/grpc")
    head = frame(1, 4, 1, fields)
    message = b"\0\0\0\0\3abc"
    end = frame(1, 5, 1, field(b"grpc-status", b"0"))
    failure = field(b"grpc-status", b"7") + field(b"grpc-message", b"no%20%C3%A9%")
    compressed = frame(1, 4, 1, fields + field(b"grpc-encoding", b"gzip"))
    answers = {
        "whole": head + frame(0, 0, 1, message) + end,
        "error": frame(1, 5, 1, fields + failure),
        "compressed": compressed + frame(0, 0, 1, b"\1\0\0\0\4\x1f\x8b\x08\0") + end,
        "large": head + frame(0, 0, 1, b"\0\xff\xff\xff\xffab"),
        "reset": head + frame(3, 0, 1, b"\0\0\0\x0b"),
        "goaway": frame(7, 0, 0, bytes(8) + b"bye") + frame(6, 0, 0, b"12345678"),
        "continuation": frame(1, 0, 1, fields[:6])
        + frame(9, 4, 1, fields[6:])
        + frame(8, 0, 0, b"\x7f\xff\xff\xff")
        + frame(5, 4, 1, b"\0\0\0\2" + fields),
    }
    for name, answer in answers.items():
        write("grpcclient", name, b"\xff" + answer)
    settings = frame(4, 0, 0, b"\0\3\0\0\0\1\0\4\0\1\0\0")
    padded = frame(0, 8, 1, b"\2" + message + b"\0\0")
    write("grpcclient", "pieces", b"\x03" + settings + head + padded + end)
    write("grpcclient", "other", b"\xfeHTTP/1.1 400 Bad Request\r\n\r\n")

    greeting = '{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","s":"x"}}}'

    def reply(number: int, status: str = "ok", data: str = "{}") -> str:
        return '{"t":"d","d":{"r":%d,"b":{"s":"%s","d":%s}}}' % (number, status, data)

    def push(action: str, path: str, data: str, tag: str = "") -> str:
        return '{"t":"d","d":{"a":"%s","b":{"p":"%s","d":%s%s}}}' % (action, path, data, tag)

    replies = [reply(number) for number in range(1, 10)]
    query = '{"t":"d","d":{"a":"c","b":{"p":"list","q":{"i":"n","l":2,"vf":"q"}}}}'
    sessions = {
        "answers": replies,
        "data": replies[:2]
        + [push("d", "a", '{"b":{"c":2},"n":1.5,".priority":"p"}'), push("m", "a", '{"b/c":null,"n":3}')]
        + replies[2:8],
        "windows": replies[:2]
        + [
            push("d", "list", '{"p":{"n":1},"q":{"n":2}}', ',"t":1'),
            push("m", "list", '{"q":null,"z":{"n":9}}', ',"t":1'),
            push("d", "list", '{"b":1}', ',"t":2'),
        ],
        "ranges": replies[:2] + [push("rm", "list", '[{"s":"a","e":"c/d","m":{"b":1}},{"m":5}]')],
        "refused": [reply(1, "permission_denied", '"no"'), reply(5, "datastale", '"x"'), query],
        "revoked": ['{"t":"d","d":{"a":"ac","b":{"s":"expired_token","d":"x"}}}'],
        "frames": ["3", '{"t":"d","d":{"a":"d",', '"b":{"p":"a",', '"d":7}}}', "0", "12", "{}"],
        "shutdown": ['{"t":"c","d":{"t":"s","d":"gone"}}', '{"t":"c","d":{"t":"e","d":"note"}}'],
        "wrong": ["{}", '{"t":"d"}', '{"t":"d","d":{"a":"d","b":{}}}', "[1,2]"],
    }
    for name, lines in sessions.items():
        write("databaseclient", name, "\n".join([greeting, *lines]).encode())


def cache_seeds() -> None:
    """Changes of the rows of a client's cache, and of its journal: see CacheFuzzing.swift."""
    greatest, least = b"\x7f" + b"\xff" * 7, b"\x80" + bytes(7)
    path = b"a/b"
    changes = {
        "none": b"\xff",
        "numbers": b"".join(bytes([0, column, 1]) + greatest for column in range(0, 90, 5)),
        "least": b"".join(bytes([0, column, 0]) + least for column in range(2, 90, 7)),
        "bytes": bytes([1, 10, 0, 5]) + b"\0\xff\xfea\0" + bytes([1, 31, 2, 2, 0xFF, 0x80]),
        "flips": b"".join(bytes([2, column, 1, column % 9, 0x81]) for column in range(0, 90, 4)),
        "rows": b"".join(bytes([3, column, 0]) for column in range(0, 90, 11)),
        # The time of the call, whether it is a merge, and its location with its data.
        "database-write": bytes([4, 20]) + least + bytes([0, 3, 0, 0, 0]) + path + b"\x05\x02\x01\0",
        "firestore-write": bytes([4, 11, 0]) + greatest + b"\x0a\0",
        "journal": bytes([5, 0, 8, 1, 5, 0, 30, 0x40]),
    }
    for target in ("firestorecache", "databasecache"):
        for name, change in changes.items():
            write(target, name, change)


def export_seeds() -> None:
    """Files of small exports, records with values of each kind, and lines."""
    folder = Path(__file__).parents[1] / "Vectors" / "export"
    for name in ("named-database", "suite/firestore_export"):
        data = (folder / name / "all_namespaces" / "all_kinds" / "output-0").read_bytes()
        write("export", f"{name.split('/')[0]}-log", data)
    wanted = ("array", "array-empty", "array-map-array", "deep", "geo", "reference-elsewhere", "time", "vector-in-map")
    types = (folder / "types" / "all_namespaces" / "all_kinds" / "output-0").read_bytes()
    for record in full_records(types):
        for document in wanted:
            if b"\x12\x05types" + bytes([0x22, len(document)]) + document.encode() + b"\x0c" in record[:64]:
                write("export", document, record)
    for line in ("named-database", "suite"):
        write("export", f"{line}-lines", (folder / f"{line}.ndjson").read_bytes())


def full_records(data: bytes) -> list[bytes]:
    """The data of the records of one fragment."""
    records, position = [], 0
    while position + 7 <= len(data):
        length = int.from_bytes(data[position + 4 : position + 6], "little")
        if data[position + 6] == 1:
            records.append(data[position + 7 : position + 7 + length])
        position += 7 + length
    return records


if __name__ == "__main__":
    main()
