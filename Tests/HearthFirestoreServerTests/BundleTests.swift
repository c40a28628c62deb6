import HearthBundle
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Testing

@testable import HearthHost
@testable import HearthFirestoreServer

@Suite struct BundleDefinitionTests {
    private static let database = DatabaseName(project: "p")

    private func definition(_ string: String) throws(Status) -> BundleDefinition {
        try BundleDefinition(json: Array(string.utf8), file: "x.json", name: "x", database: Self.database)
    }

    private func query(_ string: String) throws -> BundleDefinition.NamedQuery {
        try #require(try definition(#"{"queries":{"q":\#(string)}}"#).queries.first)
    }

    @Test func conditionsBecomeAStructuredQuery() throws {
        let query = try query(
            """
            {"collection": "a/b/c", "conditions": [{"where": ["n", ">=", 1.5]}, {"where": ["m", "==", null]},
            {"orderBy": "n"}, {"orderBy": ["k", "desc"]}, {"startAfter": [2, "x"]}, {"endAt": 9}, {"limit": 7}]}
            """)
        #expect(query.parent.path.string == "a/b")
        #expect(query.limitType == .first)
        let expected = try StructuredQueryMessage(
            json: """
                {"from": [{"collectionId": "c"}], "where": {"compositeFilter": {"op": "AND", "filters": [
                {"fieldFilter": {"field": {"fieldPath": "n"}, "op": "GREATER_THAN_OR_EQUAL", "value": {"doubleValue": 1.5}}},
                {"unaryFilter": {"op": "IS_NULL", "field": {"fieldPath": "m"}}}]}},
                "orderBy": [{"field": {"fieldPath": "n"}, "direction": "ASCENDING"},
                {"field": {"fieldPath": "k"}, "direction": "DESCENDING"}],
                "startAt": {"values": [{"integerValue": 2}, {"stringValue": "x"}]},
                "endAt": {"values": [{"integerValue": 9}]}, "limit": 7}
                """)
        func string(_ message: StructuredQueryMessage) -> String { String(decoding: message.json(), as: UTF8.self) }
        #expect(string(query.message) == string(expected))
    }

    @Test func queriesForTheLastResultsAreReversed() throws {
        let query = try query(
            #"{"collection":"c","conditions":[{"orderBy":"n"},{"startAt":1},{"endBefore":5},{"limitToLast":2}]}"#)
        #expect(query.limitType == .last)
        let executed = try query.executed
        #expect(executed.orderBy.map(\.direction) == [.descending])
        #expect(executed.startAt?.values == [.integer(5)])
        #expect(executed.startAt?.before == false)
        #expect(executed.endAt?.values == [.integer(1)])
        #expect(executed.endAt?.before == false)
        #expect(query.message.orderBy.map(\.direction) == [.ascending])
        #expect(query.message.startAt?.before == true)
    }

    @Test(
        arguments: [
            (#"{}"#, "queries or documents"), (#"{"documents":["c"]}"#, "documents[0]"),
            (#"{"queries":{"q":{}}}"#, "needs \"collection\""),
            (#"{"queries":{"q":{"collection":"c/d"}}}"#, "not the path of a collection"),
            (#"{"queries":{"q":{"collection":"c","parent":"a/b"}}}"#, "already contains its parent"),
            (#"{"queries":{"q":{"collection":"c","conditions":[{"limit":1},{"limitToLast":2}]}}}"#, "one limit"),
            (#"{"queries":{"q":{"collection":"c","conditions":[{"limitToLast":2}]}}}"#, "at least one order"),
            (#"{"queries":{"q":{"collection":"c","conditions":[{"where":["a","==",1],"limit":1}]}}}"#, "one member"),
            (#"{"queries":{"q":{"collection":"c","conditions":[{"where":["a","in",[]]}]}}}"#, "IN"),
            (#"{"queries":{"q":{"collection":"c","conditions":[{"startAt":[1]}]}}}"#, "ursor"),
            (#"{"queries":{"q":{"structuredQuery":{"from":[{"collectionId":"c"}],"offset":1}}}}"#, "offset"),
            (#"{"queries":{"q":{"structuredQuery":{"from":[{"collectionId":"c"}]},"limitType":"MID"}}}"#, "or LAST"),
            (#"{"documents":["c/d"],"public":1}"#, "public"), (#"{"documents":["c/d"],"id":""}"#, "needs an id"),
            (#"{"documents":["c/d"]"#, "not valid JSON"),
        ])
    func whatCannotBeUsedIsRefused(_ string: String, _ complaint: String) throws {
        let error = #expect(throws: Status.self) { try definition(string) }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.contains(complaint) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("x.json") == true)
    }

    @Test func limitsHold() {
        let documents = (0...Limits.bundleDocumentsNamedMax).map { "\"c/\($0)\"" }.joined(separator: ",")
        #expect(throws: Status.self) { try definition(#"{"documents":[\#(documents)]}"#) }
        let queries = (0...Limits.bundleQueriesMax).map { #""q\#($0)":{"collection":"c"}"# }.joined(separator: ",")
        #expect(throws: Status.self) { try definition(#"{"queries":{\#(queries)}}"#) }
        let blanks = String(repeating: " ", count: Limits.bundleDefinitionSizeBytesMax)
        #expect(throws: Status.self) { try definition(#"{"documents":["c/d"]}\#(blanks)"#) }
    }
}

@Suite struct BundleAnswerTests {
    @Test func codingsAreChosen() {
        #expect(BundleAnswer.acceptsGzip(["gzip"]))
        #expect(BundleAnswer.acceptsGzip(["br, GZIP ; q=0.5"]))
        #expect(BundleAnswer.acceptsGzip(["deflate", "x-gzip"]))
        #expect(!BundleAnswer.acceptsGzip([]))
        #expect(!BundleAnswer.acceptsGzip(["gzip;q=0"]))
        #expect(!BundleAnswer.acceptsGzip(["br, deflate"]))
        #expect(!BundleAnswer.acceptsGzip(["gzipped"]))
    }

    @Test func tagsAreFound() {
        #expect(BundleAnswer.lists([#""a", W/"b""#], #""b""#))
        #expect(BundleAnswer.lists(["*"], #""b""#))
        #expect(!BundleAnswer.lists([#""bb""#], #""b""#))
        #expect(!BundleAnswer.lists([], #""b""#))
    }
}
