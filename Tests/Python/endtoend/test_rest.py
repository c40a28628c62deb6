"""REST with nothing but an HTTP client: bindings, JSON form, errors."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from endtoend.rest import Rest

ONE = {"n": {"integerValue": "1"}}


class TestBindings:
    def test_create_get_patch_delete(self, rest: Rest) -> None:
        created = rest.send("POST", f"/v1/{rest.root}/c?documentId=a", {"fields": ONE})
        assert created.status == 200
        assert created.json["name"] == rest.name("c/a")
        assert created.json["fields"] == ONE
        assert created.json["createTime"] == created.json["updateTime"]
        assert rest.get("c/a").json == created.json
        patched = rest.put("c/a", {"m": {"integerValue": 2}}, "?updateMask.fieldPaths=m")
        assert patched.json["fields"] == {**ONE, "m": {"integerValue": "2"}}
        assert rest.send("DELETE", f"/v1/{rest.name('c/a')}").json == {}
        assert rest.get("c/a").error()[:2] == (404, "NOT_FOUND")

    def test_create_with_a_generated_id(self, rest: Rest) -> None:
        created = rest.send("POST", f"/v1/{rest.root}/c", {"fields": ONE}).json
        document_id = created["name"].rsplit("/", 1)[1]
        assert len(document_id) == 20 and document_id.isalnum()

    def test_create_in_a_subcollection(self, rest: Rest) -> None:
        assert rest.send("POST", f"/v1/{rest.name('c/a')}/s?documentId=x", {}).json["name"] == rest.name("c/a/s/x")

    def test_patch_without_mask_replaces(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        assert rest.put("c/a", {"b": {"booleanValue": False}}).json["fields"] == {"b": {"booleanValue": False}}

    def test_patch_with_two_paths_and_a_mask_for_the_answer(self, rest: Rest) -> None:
        rest.put("c/a", {"a": {"stringValue": "x"}, "b": {"stringValue": "y"}, "c": {"stringValue": "z"}})
        query = "?updateMask.fieldPaths=a&updateMask.fieldPaths=b&mask.fieldPaths=a&mask.fieldPaths=c"
        answer = rest.put("c/a", {"a": {"stringValue": "new"}}, query).json
        assert answer["fields"] == {"a": {"stringValue": "new"}, "c": {"stringValue": "z"}}
        assert "b" not in rest.get("c/a").json["fields"]

    def test_conditions_in_the_query_string(self, rest: Rest) -> None:
        assert rest.put("c/a", ONE, "?currentDocument.exists=true").status == 404
        assert rest.put("c/a", ONE, "?currentDocument.exists=false").status == 200
        assert rest.put("c/a", ONE, "?currentDocument.exists=false").status == 409
        target = f"/v1/{rest.name('c/none')}?currentDocument.exists=true"
        assert rest.send("DELETE", target).error()[:2] == (404, "NOT_FOUND")

    @pytest.mark.emulator_differs("it misreads times in query strings")
    def test_times_in_the_query_string(self, rest: Rest) -> None:
        first = rest.put("c/a", ONE).json["updateTime"]
        rest.put("c/a", {"n": {"integerValue": "2"}})
        assert rest.get("c/a", f"?readTime={first}").json["fields"] == ONE
        stale = f"/v1/{rest.name('c/a')}?currentDocument.updateTime={first}"
        assert rest.send("DELETE", stale).error()[:2] == (400, "FAILED_PRECONDITION")

    def test_mask_of_a_get(self, rest: Rest) -> None:
        rest.put("c/a", {"a": ONE["n"], "m": {"mapValue": {"fields": {"x": ONE["n"], "y": ONE["n"]}}}})
        for query in ("?mask.fieldPaths=m.x", "?mask.field_paths=m.x"):
            assert rest.get("c/a", query).json["fields"] == {"m": {"mapValue": {"fields": {"x": ONE["n"]}}}}

    def test_list(self, rest: Rest) -> None:
        for n in range(5):
            rest.put(f"c/{n}", {"n": {"integerValue": str(9 - n)}})
        rest.put("c/missing/s/x", {})
        listed = rest.get("c", "?pageSize=3").json
        assert [d["name"][-1] for d in listed["documents"]] == ["0", "1", "2"]
        rest_of_it = rest.get("c", f"?pageSize=30&pageToken={listed['nextPageToken'].replace('=', '%3D')}").json
        assert [d["name"][-1] for d in rest_of_it["documents"]] == ["3", "4"]
        assert "nextPageToken" not in rest_of_it
        shown = rest.get("c", "?showMissing=true&pageSize=50").json["documents"]
        assert shown[-1] == {"name": rest.name("c/missing")}
        ordered = rest.get("c", "?orderBy=n%20desc&pageSize=10").json["documents"]
        assert [d["name"][-1] for d in ordered] == ["0", "1", "2", "3", "4"]
        assert rest.get("none").json == {}

    def test_commit_begin_rollback(self, rest: Rest) -> None:
        transaction = rest.call("beginTransaction", {}).json["transaction"]
        assert base64.b64decode(transaction)
        answer = rest.call("commit", {"transaction": transaction, "writes": [{"update": {"name": rest.name("c/a")}}]})
        assert answer.json["writeResults"] == [{"updateTime": answer.json["commitTime"]}]
        other = rest.call("beginTransaction", {"options": {"readOnly": {}}}).json["transaction"]
        assert rest.call("rollback", {"transaction": other}).json == {}

    def test_batch_get(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        answer = rest.call("batchGet", {"documents": [rest.name("c/a"), rest.name("c/none")]}).json
        assert {next(iter(entry.keys() - {"readTime"})) for entry in answer} == {"found", "missing"}
        assert len({entry["readTime"] for entry in answer}) == 1
        assert rest.call("batchGet", {"documents": []}).json == []

    def test_batch_write(self, rest: Rest) -> None:
        writes = [
            {"update": {"name": rest.name("c/a"), "fields": ONE}},
            {"update": {"name": rest.name("c/none")}, "currentDocument": {"exists": True}},
            {"delete": rest.name("c/b")},
        ]
        answer = rest.call("batchWrite", {"writes": writes}).json
        assert [status.get("code", 0) for status in answer["status"]] == [0, 5, 0]
        assert answer["writeResults"][1:] == [{}, {}]

    def test_list_collection_ids(self, rest: Rest) -> None:
        rest.put("b/1", {})
        rest.put("a/1/deep/2", {})
        assert rest.call("listCollectionIds", {}).json == {"collectionIds": ["a", "b"]}
        assert rest.call("listCollectionIds", {"pageSize": 5}, "a/1").json == {"collectionIds": ["deep"]}
        assert rest.call("listCollectionIds", {}, "b/1").json == {}

    def test_named_database(self, rest: Rest) -> None:
        target = f"/v1/projects/{rest.project}/databases/named-db/documents/c/a"
        assert rest.send("PATCH", target, {"fields": ONE}).status == 200
        assert rest.get("c/a").status == 404


class TestStreams:
    QUERY = {"structuredQuery": {"from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "n"}}]}}

    def test_query_is_an_array(self, rest: Rest) -> None:
        rest.put("c/b", {"n": {"integerValue": "1"}})
        rest.put("c/a", {"n": {"integerValue": "2"}})
        answer = rest.call("runQuery", self.QUERY)
        assert answer.headers["content-type"].startswith("application/json")
        assert [entry["document"]["name"][-1] for entry in answer.json if "document" in entry] == ["b", "a"]
        assert len({entry["readTime"] for entry in answer.json}) == 1

    def test_query_without_results_has_a_read_time(self, rest: Rest) -> None:
        answer = rest.call("runQuery", self.QUERY).json
        assert len(answer) == 1 and answer[0].keys() - {"done"} == {"readTime"}

    @pytest.mark.emulator_differs("it says done at the end")
    def test_no_done_over_rest(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        assert all("done" not in entry for entry in rest.call("runQuery", self.QUERY).json)

    @pytest.mark.emulator_differs("it puts the number on documents")
    def test_skipped_results_come_first(self, rest: Rest) -> None:
        for name in "abc":
            rest.put(f"c/{name}", ONE)
        query = {"structuredQuery": {"from": [{"collectionId": "c"}], "offset": 2}}
        first, *others = rest.call("runQuery", query).json
        assert first["skippedResults"] == 2 and "document" not in first
        assert [entry["document"]["name"][-1] for entry in others] == ["c"]

    def test_aggregation_of_nothing(self, rest: Rest) -> None:
        field = {"field": {"fieldPath": "n"}}
        aggregations = [{"alias": "c", "count": {}}, {"alias": "s", "sum": field}, {"alias": "a", "avg": field}]
        body = {
            "structuredAggregationQuery": {
                "structuredQuery": {"from": [{"collectionId": "c"}]},
                "aggregations": aggregations,
            }
        }
        (entry,) = rest.call("runAggregationQuery", body).json
        zero = {"integerValue": "0"}
        assert entry["result"]["aggregateFields"] == {"c": zero, "s": zero, "a": {"nullValue": None}}

    @pytest.mark.emulator_differs("it answers an object")
    def test_an_error_before_the_first_message_stands_in_an_array(self, rest: Rest) -> None:
        answer = rest.call("runQuery", {"structuredQuery": {"from": [{"collectionId": "c"}], "limit": -1}})
        assert isinstance(answer.json, list) and len(answer.json) == 1
        assert answer.error()[:2] == (400, "INVALID_ARGUMENT")

    def test_ten_thousand_results(self, rest: Rest) -> None:
        for start in range(0, 10_000, 500):
            writes = [{"update": {"name": rest.name(f"c/{n:05}"), "fields": ONE}} for n in range(start, start + 500)]
            assert rest.call("commit", {"writes": writes}).status == 200
        answer = rest.call("runQuery", {"structuredQuery": {"from": [{"collectionId": "c"}]}}).json
        assert len([entry for entry in answer if "document" in entry]) == 10_000


class TestJson:
    """Data that must be returned as exactly the same JSON."""

    VALUES: list[Any] = [
        {"nullValue": None},
        {"booleanValue": False},
        {"integerValue": "0"},
        {"integerValue": "-9223372036854775808"},
        {"doubleValue": "NaN"},
        {"doubleValue": "-Infinity"},
        {"doubleValue": 1.5},
        {"stringValue": ""},
        {"stringValue": 'é"\\/\u0000\u001f\u2028\U0001f600'},
        {"bytesValue": ""},
        {"bytesValue": "+/8="},
        {"timestampValue": "2020-01-01T00:00:00Z"},
        {"timestampValue": "2020-01-01T00:00:00.100Z"},
        {"timestampValue": "2020-01-01T00:00:00.000001Z"},
        {"timestampValue": "0001-01-01T00:00:00Z"},
        {"geoPointValue": {"latitude": -1.5, "longitude": 2.25}},
        {"arrayValue": {}},
        {"mapValue": {}},
        {"arrayValue": {"values": [{"nullValue": None}, {"mapValue": {"fields": ONE}}]}},
    ]

    @pytest.mark.parametrize("value", VALUES, ids=str)
    def test_value(self, rest: Rest, value: Any) -> None:
        assert rest.put("c/a", {"v": value}).json["fields"] == {"v": value}
        assert rest.get("c/a").json["fields"] == {"v": value}

    @pytest.mark.parametrize(
        ("sent", "stored"),
        [
            ({"integerValue": 5}, {"integerValue": "5"}),
            ({"doubleValue": "1.5"}, {"doubleValue": 1.5}),
            ({"nullValue": "NULL_VALUE"}, {"nullValue": None}),
            ({"bytesValue": "-_-_"}, {"bytesValue": "+/+/"}),
            ({"bytesValue": "YQ"}, {"bytesValue": "YQ=="}),
            ({"timestampValue": "2020-01-01T02:00:00.5+02:00"}, {"timestampValue": "2020-01-01T00:00:00.500Z"}),
            ({"timestampValue": "2020-01-01T00:00:00.123456789Z"}, {"timestampValue": "2020-01-01T00:00:00.123456Z"}),
        ],
        ids=str,
    )
    def test_other_spellings(self, rest: Rest, sent: Any, stored: Any) -> None:
        assert rest.put("c/a", {"v": sent}).json["fields"] == {"v": stored}

    @pytest.mark.emulator_differs("it loses the sign when it reads JSON")
    def test_minus_zero(self, rest: Rest) -> None:
        rest.put("c/a", {"v": {"doubleValue": -0.0}})
        assert b"-0" in rest.get("c/a").content

    def test_document_without_fields(self, rest: Rest) -> None:
        assert rest.put("c/a", {}).json.keys() == {"name", "createTime", "updateTime"}

    def test_enums_as_numbers_and_snake_case(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        query = {"from": [{"collection_id": "c"}], "order_by": [{"field": {"field_path": "n"}, "direction": 2}]}
        assert len(rest.call("runQuery", {"structured_query": query}).json) == 1

    def test_empty_mask_differs_from_none(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        write = {"update": {"name": rest.name("c/a"), "fields": {"x": ONE["n"]}}, "updateMask": {}}
        rest.call("commit", {"writes": [write]})
        assert rest.get("c/a").json["fields"] == ONE


class TestErrors:
    @pytest.mark.parametrize(
        "body",
        [
            b"{",
            b"[]",
            b'{"writes": {}}',
            b'{"writes": [{"update": {"name": 5}}]}',
            b'{"writes": [{"nonsense": 1}]}',
            b'{"unknown": 1}',
            b'{"transaction": "*"}',
        ],
    )
    def test_bad_bodies(self, rest: Rest, body: bytes) -> None:
        answer = rest.send("POST", f"/v1/{rest.root}:commit", body, {"Content-Type": "application/json"})
        assert answer.error()[:2] == (400, "INVALID_ARGUMENT")

    @pytest.mark.emulator_differs("its text names nothing")
    def test_an_unknown_member_is_named(self, rest: Rest) -> None:
        answer = rest.call("commit", {"writes": [], "unknown": 1})
        assert "unknown" in answer.error()[2]
        violations = [v for d in answer.json["error"]["details"] for v in d.get("fieldViolations", [])]
        assert violations

    @pytest.mark.emulator_differs("it ignores them")
    def test_an_unknown_query_parameter(self, rest: Rest) -> None:
        assert rest.get("c/a", "?nonsense=1").error()[:2] == (400, "INVALID_ARGUMENT")

    @pytest.mark.parametrize(
        "query", ["?alt=json", "?prettyPrint=false", "?key=abc", "?$alt=json", "?access_token=owner"]
    )
    def test_system_parameters_are_accepted(self, rest: Rest, query: str) -> None:
        rest.put("c/a", ONE)
        assert rest.get("c/a", query).json["fields"] == ONE

    @pytest.mark.parametrize(
        ("verb", "path"),
        [("GET", "/v1/nonsense"), ("POST", "/v1/{D}/documents:nonsense"), ("GET", "/v7/{D}/documents/c/a")],
    )
    def test_no_binding(self, rest: Rest, verb: str, path: str) -> None:
        answer = rest.send(verb, path.replace("{D}", rest.database), {} if verb == "POST" else None)
        assert answer.status == 404

    def test_odd_number_of_segments(self, rest: Rest) -> None:
        assert rest.put("c", {}).status in (400, 404)
        assert rest.send("DELETE", f"/v1/{rest.name('c')}").status in (400, 404)


class TestPaths:
    @pytest.mark.parametrize(
        ("encoded", "document_id"),
        [
            ("a%2Bb", "a+b"),
            ("a+b", "a+b"),
            ("%C3%A9", "é"),
            ("a%20b", "a b"),
            ("a:b", "a:b"),
            ("a:runQuery", "a:runQuery"),
            ("%25", "%"),
            ("%F0%9F%98%80", "\U0001f600"),
        ],
    )
    def test_ids(self, rest: Rest, encoded: str, document_id: str) -> None:
        answer = rest.send("PATCH", f"/v1/{rest.root}/c/{encoded}", {"fields": ONE})
        assert answer.json["name"] == rest.name(f"c/{document_id}")
        assert rest.get(f"c/{encoded}").json["fields"] == ONE

    def test_encoded_parentheses(self, rest: Rest) -> None:
        rest.put("c/a", ONE)
        target = f"/v1/projects/{rest.project}/databases/%28default%29/documents/c/a"
        assert rest.send("GET", target).json["name"] == rest.name("c/a")

    @pytest.mark.emulator_differs("it does not decode the path before a custom verb")
    def test_encoded_parentheses_before_a_verb(self, rest: Rest) -> None:
        target = f"/v1/projects/{rest.project}/databases/%28default%29/documents:commit"
        assert rest.send("POST", target, {"writes": []}).status == 200

    @pytest.mark.emulator_differs("it takes an encoded slash for a separator")
    def test_an_encoded_slash_does_not_separate(self, rest: Rest) -> None:
        assert rest.get("c/a%2Fb").status == 400
