import HearthModel
import HearthWire
import Testing

private let database = DatabaseName(project: "p")
private let root = ResourceName(database: database, path: ResourcePath())
private let documents = "projects/p/databases/(default)/documents"

@Suite struct WriteConversionTests {
    private func write(_ json: String) throws(Status) -> Write {
        try WriteMessage(json: json.replacing("$", with: documents)).write(database: database)
    }

    @Test func operationsBecomeTheModels() throws {
        let update = try write(#"{"update":{"name":"$/c/x","fields":{"a":{"integerValue":1}}}}"#)
        #expect(update.document.string == documents + "/c/x" && update.precondition == .none)
        guard case .update(let fields, nil) = update.operation else { throw Status.internalError("no update") }
        #expect(fields["a"] == .integer(1))
        guard case .update(_, let mask?) = try write(#"{"update":{"name":"$/c/x"},"updateMask":{}}"#).operation else {
            throw Status.internalError("no mask")
        }
        #expect(mask.isEmpty)
        let masked = try write(
            #"{"update":{"name":"$/c/x"},"updateMask":{"fieldPaths":["a.b","`c d`"]},"currentDocument":{"exists":true}}"#
        )
        guard case .update(_, let paths?) = masked.operation else { throw Status.internalError("no mask") }
        #expect(paths == [FieldPath(segments: ["a", "b"]), FieldPath("c d")] && masked.precondition == .exists(true))
        guard case .delete = try write(#"{"delete":"$/c/x","currentDocument":{}}"#).operation else {
            throw Status.internalError("no delete")
        }
        let verify = try write(#"{"verify":"$/c/x","currentDocument":{"updateTime":"1970-01-01T00:00:00.000001Z"}}"#)
        #expect(verify.precondition == .updateTime(Timestamp(microseconds: 1)))
        let transform = try write(
            #"{"transform":{"document":"$/c/x","fieldTransforms":[{"fieldPath":"t","setToServerValue":"REQUEST_TIME"},{"fieldPath":"n","increment":{"doubleValue":1}}]}}"#
        )
        guard case .update(let none, let empty?) = transform.operation else {
            throw Status.internalError("no transform")
        }
        #expect(none.isEmpty && empty.isEmpty && transform.transforms.count == 2)
    }

    @Test(arguments: [
        ("{}", "empty write operation"),
        (#"{"delete":"$/c/x","updateMask":{}}"#, "a delete must not specify a document mask."),
        (
            #"{"delete":"$/c/x","updateTransforms":[{"fieldPath":"a"}]}"#,
            "a delete must not specify a update transform."
        ),
        (#"{"verify":"$/c/x"}"#, "a verify must contain a precondition"),
        (#"{"verify":"$/c/x","currentDocument":{}}"#, "a verify must contain a precondition"),
        (#"{"verify":"$/c/x","updateMask":{}}"#, "a verify must not specify a document mask."),
        (#"{"transform":{"document":"$/c/x"}}"#, "The list of FieldTransform must not be empty."),
        (#"{"update":{"name":"$/c"}}"#, "Document name \"$/c\" lacks \"/\" at index 42."),
        (
            #"{"delete":"projects/q/databases/(default)/documents/c/x"}"#,
            "The request was for database 'projects/p/databases/(default)' but was attempting to access database 'projects/q/databases/(default)'"
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateMask":{"fieldPaths":["__name__"]}}"#,
            "Invalid reserved name in field path __name__"
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateMask":{"fieldPaths":["a.__x__"]}}"#,
            "Invalid reserved name in field path __x__"
        ),
        (#"{"update":{"name":"$/c/x"},"updateMask":{"fieldPaths":[""]}}"#, "Invalid empty property path string."),
        (#"{"update":{"name":"$/c/x","fields":{"__x__":{"nullValue":null}}}}"#, "field name __x__ is reserved"),
        (#"{"update":{"name":"$/c/x","fields":{"":{"nullValue":null}}}}"#, "The property.name is the empty string."),
        (
            #"{"update":{"name":"$/c/x","fields":{"a":{"arrayValue":{"values":[{"arrayValue":{}}]}}}}}"#,
            "Cannot convert an array value in an array value."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a"}]}"#,
            "Operation type must be specified for field transformation."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"","setToServerValue":1}]}"#,
            "Invalid empty property path string."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"__name__","setToServerValue":1}]}"#,
            "Invalid reserved name in field path __name__"
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","setToServerValue":0}]}"#,
            "ServerValue type must be specified for set_to_server_value transformation."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","increment":{"stringValue":"1"}}]}"#,
            "Input must be int64 or double."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","maximum":{"nullValue":null}}]}"#,
            "Input must be int64 or double."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","appendMissingElements":{"values":[{"arrayValue":{}}]}}]}"#,
            "Cannot convert an array value in an array value."
        ),
        (
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"m.x","setToServerValue":1},{"fieldPath":"k","setToServerValue":1},{"fieldPath":"m","setToServerValue":1}]}"#,
            "Cannot transform property m and its nested property at the same time."
        ),
        (
            #"{"delete":"$/c/x","currentDocument":{"updateTime":"1970-01-01T00:00:00.000000001Z"}}"#,
            "timestamp cannot have more than microseconds precision"
        ),
    ])
    func malformedWritesAreRefused(_ json: String, _ message: String) {
        #expect(refusal { () throws(Status) in try write(json) } == message.replacing("$", with: documents))
    }

    @Test func equalPathsOfTransformsAreFine() throws {
        let twice = try write(
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","increment":{"integerValue":1}},{"fieldPath":"a","increment":{"integerValue":1}},{"fieldPath":"ab","increment":{"integerValue":1}}]}"#
        )
        #expect(twice.transforms.count == 3)
    }

    @Test func transformsOfOneDocumentAreLimited() throws {
        func message(_ name: String, _ count: Int) -> WriteMessage {
            WriteMessage(
                update: DocumentMessage(name: documents + "/c/" + name),
                updateTransforms: (0..<count).map { .init(fieldPath: "f\($0)", setToServerValue: .requestTime) })
        }
        #expect(
            try WriteMessage.writes([message("x", 300), message("x", 200), message("y", 1)], database: database).count
                == 3)
        #expect(
            refusal { () throws(Status) in
                try WriteMessage.writes([message("x", 300), message("x", 201)], database: database)
            }
                == "cannot have more than 500 field transforms on a single document")
    }

    @Test func modelWritesSurviveTheRoundTrip() throws {
        for json in [
            #"{"update":{"name":"$/c/x","fields":{"a":{"integerValue":"1"}}},"updateMask":{"fieldPaths":["a","`b c`.d"]},"currentDocument":{"exists":false}}"#,
            #"{"verify":"$/c/x","currentDocument":{"updateTime":"2024-01-01T00:00:00.000001Z"}}"#,
            #"{"update":{"name":"$/c/x"},"updateTransforms":[{"fieldPath":"a","removeAllFromArray":{"values":[{"nullValue":null}]}},{"fieldPath":"b","minimum":{"doubleValue":1.5}}]}"#,
        ] {
            let expected = try WriteMessage(json: json.replacing("$", with: documents))
            #expect(WriteMessage(try expected.write(database: database)).protobuf() == expected.protobuf())
        }
    }
}

@Suite struct QueryConversionTests {
    private func query(_ json: String) throws(Status) -> Query {
        try StructuredQueryMessage(json: json.replacing("$", with: documents)).query(parent: root)
    }

    @Test func partsBecomeTheModels() throws {
        let query = try query(
            #"{"from":[{"collectionId":"c"}],"where":{"compositeFilter":{"op":"AND","filters":[{"fieldFilter":{"field":{"fieldPath":"a"},"op":"IN","value":{"arrayValue":{"values":[{"integerValue":1}]}}}},{"unaryFilter":{"op":"IS_NULL","field":{"fieldPath":"b.c"}}}]}},"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"},{"field":{"fieldPath":"__name__"}}],"startAt":{"values":[{"integerValue":1}],"before":true},"endAt":{"values":[]},"offset":2,"limit":0,"select":{"fields":[{"fieldPath":"a"},{"fieldPath":"__name__"}]}}"#
        )
        #expect(
            query.scope == .collection("c") && query.offset == 2 && query.limit == 0
                && query.projection == [FieldPath("a")])
        #expect(
            query.orders == [
                .init(field: FieldPath("a"), descending: true), .init(field: .documentName, descending: false),
            ])
        #expect(query.start?.before == true && query.start?.values.count == 1 && query.end?.values.isEmpty == true)
        guard case .and(let members)? = query.filter, members.count == 2 else {
            throw Status.internalError("no filter")
        }
    }

    @Test func scopesFollowTheSelector() throws {
        #expect(try query("{}").scope == .anyCollection)
        #expect(try query(#"{"from":[{}]}"#).scope == .anyCollection)
        #expect(try query(#"{"from":[{"allDescendants":true}]}"#).scope == .allDescendants)
        #expect(try query(#"{"from":[{"collectionId":"c","allDescendants":true}]}"#).scope == .collectionGroup("c"))
    }

    @Test func emptyProjectionsMeanAllFieldsAndTheNameMeansNone() throws {
        #expect(try query(#"{"from":[{"collectionId":"c"}]}"#).projection == nil)
        #expect(try query(#"{"from":[{"collectionId":"c"}],"select":{}}"#).projection == nil)
        #expect(
            try query(#"{"from":[{"collectionId":"c"}],"select":{"fields":[{"fieldPath":"__name__"}]}}"#).projection
                == [])
    }

    @Test func anEmptyANDIsNoFilter() throws {
        #expect(try query(#"{"from":[{"collectionId":"c"}],"where":{"compositeFilter":{"op":"AND"}}}"#).filter == nil)
    }

    private static func filter(_ inner: String) -> String { #"{"from":[{"collectionId":"c"}],"where":\#(inner)}"# }

    private static func field(_ path: String, _ op: String, _ value: String) -> String {
        filter(#"{"fieldFilter":{"field":{"fieldPath":"\#(path)"},"op":"\#(op)","value":\#(value)}}"#)
    }

    private static func list(_ count: Int) -> String {
        #"{"arrayValue":{"values":["# + Array(repeating: #"{"nullValue":null}"#, count: count).joined(separator: ",")
            + "]}}"
    }

    private static let one = #"{"integerValue":1}"#
    private static let vector =
        #"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":{"arrayValue":{"values":[{"doubleValue":1}]}}}}}"#

    private static func nearest(
        _ rest: String, vector: String = vector, measure: String = "COSINE", limit: String = "5"
    ) -> String {
        #"{"from":[{"collectionId":"c"}],"findNearest":{"vectorField":{"fieldPath":"v"},"queryVector":\#(vector),"distanceMeasure":"\#(measure)","limit":\#(limit)}\#(rest)}"#
    }

    @Test(arguments: [
        (
            #"{"from":[{"collectionId":"a"},{"collectionId":"b"}]}"#,
            "StructuredQuery.from cannot have more than one collection selector."
        ),
        (#"{"from":[{"collectionId":"a/b"}]}"#, "Collection id \"a/b\" is invalid because it contains \"/\"."),
        (#"{"offset":-1}"#, "offset is negative"), (#"{"limit":-1}"#, "limit is negative"),
        (filter(#"{"compositeFilter":{"filters":[]}}"#), "Unsupported CompositeFilter operator."),
        (filter(#"{"compositeFilter":{"op":"OR"}}"#), "Composite filter must have at least one sub-filter."),
        (filter(#"{"unaryFilter":{"field":{"fieldPath":"a"}}}"#), "Unknown UnaryFilter operator."),
        (field("a", "OPERATOR_UNSPECIFIED", one), "Unknown FieldFilter operator."),
        (field("", "EQUAL", one), "Invalid empty property path string."),
        (
            filter(#"{"fieldFilter":{"field":{"fieldPath":"a"},"op":"EQUAL"}}"#),
            "Cannot convert firestore.v1.Value with type unset."
        ),
        (field("a", "IN", one), "'IN' requires an ArrayValue."),
        (field("a", "NOT_IN", vector), "'NOT_IN' requires an ArrayValue."),
        (field("a", "ARRAY_CONTAINS_ANY", list(0)), "'ARRAY_CONTAINS_ANY' requires an non-empty ArrayValue."),
        (field("a", "IN", list(31)), "'IN' supports up to 30 comparison values."),
        (field("a", "NOT_IN", list(11)), "'NOT_IN' supports up to 10 comparison values."),
        (field("__name__", "EQUAL", one), "__key__ filter value must be a Key"),
        (field("__name__", "IN", list(1)), "__key__ filter value must be a Key"),
        (field("__name__", "ARRAY_CONTAINS", one), "the name __key__ is reserved"),
        (
            #"{"from":[{"collectionId":"c"}],"orderBy":[{"field":{"fieldPath":"a"}},{"field":{"fieldPath":"a"}}]}"#,
            "order by clause cannot contain duplicate fields a"
        ),
        (
            #"{"from":[{"collectionId":"c"}],"orderBy":[{"field":{"fieldPath":"__name__"}},{"field":{"fieldPath":"a"}}]}"#,
            "order by clause cannot contain more fields after the key"
        ),
        (#"{"orderBy":[{"field":{"fieldPath":"a"}}]}"#, "kind is required for all orders except __key__ ascending"),
        (#"{"where":{"unaryFilter":{"op":"IS_NULL","field":{"fieldPath":"a"}}}}"#, "kind is required for filter: a"),
        (nearest("", measure: "DISTANCE_MEASURE_UNSPECIFIED"), "Unknown Distance Measure."),
        (nearest("", limit: "1001"), "FindNearest.limit must be a positive integer of no more than 1000"),
        (nearest("", limit: "0"), "FindNearest.limit must be a positive integer of no more than 1000"),
        (nearest("", limit: "null"), "FindNearest.limit must be a positive integer of no more than 1000"),
        (nearest(#","offset":1"#), "A query offset cannot be used with FindNearest"),
        (nearest(#","limit":1"#), "A query limit cannot be used with FindNearest"),
        (nearest(#","startAt":{}"#), "Cursor has too many values."),
        (
            nearest(
                "",
                vector: #"{"mapValue":{"fields":{"__type__":{"stringValue":"__vector__"},"value":{"arrayValue":{}}}}}"#),
            "Cannot have a zero length vector."
        ),
        (nearest("", vector: one), "FindNearest.query_vector must be a vector."),
    ])
    func malformedQueriesAreRefused(_ json: String, _ message: String) {
        #expect(refusal { () throws(Status) in try query(json) } == message)
    }

    @Test func queryKeysMayBePurePositions() throws {
        let json = Self.field(
            "__name__", "GREATER_THAN_OR_EQUAL", #"{"referenceValue":"$/c\u0000/__id-9223372036854775808__"}"#)
        guard case .field(_, .greaterThanOrEqual, .reference)? = try query(json).filter else {
            throw Status.internalError("no filter")
        }
        #expect(
            refusal { () throws(Status) in
                try query(
                    Self.field("__name__", "EQUAL", #"{"referenceValue":"projects/q/databases/d/documents/c/x"}"#))
            }?.contains("attempting to access database") == true)
    }

    @Test func vectorSearchesBecomeTheModels() throws {
        let nearest = try #require(try query(Self.nearest("")).findNearest)
        #expect(
            nearest.vector == [1] && nearest.measure == .cosine && nearest.limit == 5 && nearest.resultField == nil
                && nearest.threshold == nil)
    }

    @Test func modelQueriesSurviveTheRoundTrip() throws {
        for json in [
            #"{"from":[{"collectionId":"c","allDescendants":true}],"where":{"compositeFilter":{"op":"OR","filters":[{"fieldFilter":{"field":{"fieldPath":"`a b`"},"op":"NOT_IN","value":{"arrayValue":{"values":[{"integerValue":"1"}]}}}},{"unaryFilter":{"op":"IS_NOT_NAN","field":{"fieldPath":"b"}}}]}},"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"}],"startAt":{"values":[{"integerValue":"1"}],"before":true},"endAt":{},"offset":2,"limit":3,"select":{"fields":[{"fieldPath":"__name__"}]}}"#,
            Self.nearest(#","where":{"unaryFilter":{"op":"IS_NULL","field":{"fieldPath":"a"}}}"#), "{}",
        ] {
            let message = try StructuredQueryMessage(json: json)
            #expect(StructuredQueryMessage(try message.query(parent: root)).protobuf() == message.protobuf())
        }
    }

    @Test func aggregationsGetTheirAliases() throws {
        let message = try StructuredAggregationQueryMessage(
            json:
                #"{"structuredQuery":{},"aggregations":[{"count":{}},{"alias":"x","sum":{"field":{"fieldPath":"a"}}},{"avg":{"field":{"fieldPath":"`b c`"}}},{"alias":"n","count":{"upTo":"3"}}]}"#
        )
        #expect(try message.modelAggregations().map(\.alias) == ["field_1", "x", "field_2", "n"])
        #expect(try message.query(parent: root).scope == .anyCollection)
    }

    @Test(arguments: [
        ("", "Aggregations can not be empty."),
        (#"{"alias":"x","count":{}},{"alias":"x","count":{}}"#, "Aggregation aliases contain duplicate alias: x."),
        (#"{"alias":"field_1","count":{}},{"count":{}}"#, "Aggregation aliases contain duplicate alias: field_1."),
        (
            Array(repeating: #"{"count":{}}"#, count: 6).joined(separator: ","),
            "The maximum number of aggregations allowed in an aggregation query is 5. Received: 6"
        ),
        (#"{"sum":{"field":{"fieldPath":"__name__"}}}"#, "Aggregations are not supported for the property: __key__"),
        (#"{"count":{"upTo":"0"}}"#, "The `up_to` value in a COUNT aggregation must be greater than zero."),
        ("{}", "An aggregation must have an operator."), (#"{"sum":{}}"#, "Invalid empty property path string."),
    ])
    func malformedAggregationsAreRefused(_ list: String, _ message: String) {
        #expect(
            refusal { () throws(Status) in
                try StructuredAggregationQueryMessage(json: "{\"aggregations\":[\(list)]}").modelAggregations()
            } == message)
    }

    @Test(
        arguments: [
            ("", []), ("  ", []), ("a", ["a"]), ("a, b desc, __name__", ["a", "-b", "__name__"]),
            ("a  ASC ,b.c\tDESC", ["a", "-b.c"]),
            ("`a, b` desc", ["-`a, b`"]), ("`x desc`", ["`x desc`"]), ("`a``, b", nil), ("a b", nil), ("a,,b", nil),
            ("a desc desc", nil), ("desc", ["desc"]),
            ("a,", nil), ("1a", nil), ("`a\\``", ["`a\\``"]),
        ] as [(String, [String]?)])
    func orderByStringsAreParsed(_ order: String, _ expected: [String]?) throws {
        if let expected {
            #expect(try OrderByString.parse(order).map { ($0.descending ? "-" : "") + $0.field.string } == expected)
        } else {
            #expect(
                refusal { () throws(Status) in try OrderByString.parse(order) }
                    == "Invalid order by clause \"\(order)\"")
        }
    }

    @Test func masksOfReadsOmitTheName() throws {
        #expect(try DocumentMaskMessage(fieldPaths: ["a", "__name__"]).readPaths() == [FieldPath("a")])
        #expect(
            refusal { () throws(Status) in try DocumentMaskMessage(fieldPaths: ["a..b"]).readPaths() }?.contains(
                "Invalid property path \"a..b\"") == true)
    }
}
