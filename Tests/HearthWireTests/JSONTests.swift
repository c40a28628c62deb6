import HearthModel
import HearthWire
import Testing

@Suite struct JSONTests {
    @Test func bothSpellingsOfNamesAreAccepted() throws {
        for string in [
            #"{"structuredQuery":{"orderBy":[{"field":{"fieldPath":"a"},"direction":"DESCENDING"}]}}"#,
            #"{"structured_query":{"order_by":[{"field":{"field_path":"a"},"direction":2}]}}"#,
            #" { "structured\u0051uery" : {"orderBy":[{"field":{"fieldPath":"\u0061"},"direction":"2"}]}}"#,
        ] {
            let request = try RunQueryRequest(json: string)
            let order = try #require(request.structuredQuery?.orderBy.first)
            #expect(order.field?.fieldPath == "a" && order.direction == .descending)
        }
    }

    @Test(arguments: [
        (#"{"x":1}"#, #"Invalid JSON payload received. Unknown name "x": Cannot find field."#),
        (
            #"{"structuredQuery":{"where":{"x":1}}}"#,
            #"Invalid JSON payload received. Unknown name "x" at 'structured_query.where': Cannot find field."#
        ),
        (
            #"{"structuredQuery":{"orderBy":[{},{"field":{"path":"a"}}]}}"#,
            #"Invalid JSON payload received. Unknown name "path" at 'structured_query.order_by[1].field': Cannot find field."#
        ),
        (#"{"parent":5}"#, "Invalid value at 'parent' (TYPE_STRING), 5"),
        (#"{"structuredQuery":{"limit":"x"}}"#, #"Invalid value at 'structured_query.limit' (TYPE_INT32), "x""#),
        (#"{"structuredQuery":{"limit":1.5}}"#, "Invalid value at 'structured_query.limit' (TYPE_INT32), 1.5"),
        (
            #"{"structuredQuery":{"limit":2147483648}}"#,
            "Invalid value at 'structured_query.limit' (TYPE_INT32), 2147483648"
        ),
        (
            #"{"structuredQuery":5}"#,
            "Invalid value at 'structured_query' (type.googleapis.com/google.firestore.v1.StructuredQuery), 5"
        ),
        (
            #"{"structuredQuery":{"where":{"compositeFilter":{"op":"NAND"}}}}"#,
            "Invalid value at 'structured_query.where.composite_filter.op' "
                + "(type.googleapis.com/google.firestore.v1.StructuredQuery.CompositeFilter.Operator), \"NAND\""
        ),
        (
            #"{"transaction":"AA==","readTime":"2024-01-01T00:00:00Z"}"#,
            "Invalid value (oneof), oneof field 'consistency_selector' is already set. Cannot set 'readTime'"
        ),
        (
            #"{"structuredQuery":{"startAt":{"values":[{"integerValue":"1","stringValue":"x"}]}}}"#,
            "Invalid value at 'structured_query.start_at.values[0]' (oneof), "
                + "oneof field 'value_type' is already set. Cannot set 'stringValue'"
        ),
        (
            #"{"parent":["a"]}"#,
            #"Invalid JSON payload received. Unknown name "parent": Proto field is not repeating, cannot start list."#
        ),
        (#"{"parent":{}}"#, "Invalid value at 'parent' (TYPE_STRING), Starting an object on a scalar field"),
        (#"{"transaction":"*"}"#, #"Invalid value at 'transaction' (TYPE_BYTES), Base64 decoding failed for "*""#),
        (#"{"explainOptions":{"analyze":"true"}}"#, #"Invalid value at 'explain_options.analyze' (TYPE_BOOL), "true""#),
    ])
    func errorsStateTheMemberAndItsPath(_ string: String, _ message: String) {
        #expect(refusal { () throws(Status) in try RunQueryRequest(json: string) } == message)
    }

    @Test func errorPathsBeginAtTheGivenPath() {
        let string = #"{"fields":{"a":{"arrayValue":{"values":[{"nullValue":null},{"integerValue":"1.5"}]}}}}"#
        #expect(
            refusal { () throws(Status) in try DocumentMessage(json: string, at: "document") }
                == "Invalid value at 'document.fields[0].value.array_value.values[1].integer_value' (TYPE_INT64), \"1.5\""
        )
        let twice = #"{"fields":{"a":{"nullValue":null},"a":{"nullValue":null}}}"#
        #expect(
            refusal { () throws(Status) in try DocumentMessage(json: twice, at: "document") }
                == "Invalid JSON payload received. Unknown name \"a\" at 'document.fields': Repeated map key: 'a' is already set."
        )
    }

    @Test(arguments: [
        "", "{", "}", "[]", "null", "{\"parent\"}", "{\"parent\":}", "{\"parent\":\"a\",}", "{,}",
        "{\"parent\":\"a\" \"b\"}",
        "{\"parent\":\"a\"} x", "{'parent':\"a\"}", "{parent:\"a\"}", "{\"parent\":\"a\n\"}", "{\"parent\":\"\\x\"}",
        "{\"parent\":\"\\ud800\"}", "{\"parent\":\"\\udc00\\ud800\"}", "{\"parent\":\"\\ud800\\u0061\"}",
        "{\"parent\":\"\\u12\"}",
        "{\"parent\":\"\\u12g4\"}", "{\"parent\":\"a", "{\"parent\":nul}", "{\"structuredQuery\":{\"offset\":01}}",
        "{\"structuredQuery\":{\"offset\":+1}}", "{\"structuredQuery\":{\"offset\":1.}}",
        "{\"structuredQuery\":{\"offset\":.5}}",
        "{\"structuredQuery\":{\"offset\":1e}}", "{\"structuredQuery\":{\"offset\":-}}",
        "{\"structuredQuery\":{\"offset\":NaN}}",
        "{\"structuredQuery\":{\"offset\":0x1}}", "{\"structuredQuery\":{\"offset\":\" 1\"}}",
        "{\"structuredQuery\":{\"offset\":\"\"}}",
        "{\"parent\":\"a\"}\u{0}", "\u{feff}{}", "{/**/}", "{\"structuredQuery\":{\"offset\":[1]}}", "{\"parent\":\"\\",
    ])
    func malformedJSONIsRejected(_ string: String) {
        #expect(refusal { () throws(Status) in try RunQueryRequest(json: string) } != nil)
    }

    @Test func invalidUTF8IsRefused() {
        let string = Array("{\"parent\":\"".utf8) + [0xc3, 0x28] + Array("\"}".utf8)
        #expect(refusal { () throws(Status) in try RunQueryRequest(json: string) }?.contains("not valid UTF-8") == true)
    }

    @Test func escapesAreRead() throws {
        let request = try RunQueryRequest(json: #"{"parent":"\"\\\/\b\f\n\r\té\ud83d\ude00\u0000"}"#)
        #expect(Array(request.parent.utf8) == Array("\"\\/\u{8}\u{c}\n\r\té😀\u{0}".utf8))
    }

    @Test func numbersAreReadInEveryForm() throws {
        for (string, expected) in [
            ("\"9223372036854775807\"", Int64.max), ("-9223372036854775808", .min), ("1e3", 1000), ("2.0", 2),
            ("\"-0\"", 0),
            ("1.5e1", 15), ("-9007199254740993", -9_007_199_254_740_993),
        ] {
            #expect(try integer("{\"integerValue\":\(string)}") == expected)
        }
        for string in ["9223372036854775808", "\"1.5\"", "1e400", "\"1 \"", "true", "-9223372036854775809"] {
            #expect(refusal { () throws(Status) in try integer("{\"integerValue\":\(string)}") } != nil, "\(string)")
        }
        for (string, expected) in [
            ("3", 3.0), ("-0.0", -0.0), ("\"-0\"", -0.0), ("0.1", 0.1), ("1e22", 1e22), ("1e23", 1e23),
            ("5e-324", .leastNonzeroMagnitude),
            ("1.7976931348623157e308", 1.7976931348623157e308), ("\"Infinity\"", .infinity),
            ("\"-Infinity\"", -.infinity),
            ("123456789012345678901234567890", 123_456_789_012_345_677_877_719_597_056),
            ("0.30000000000000004", 0.30000000000000004),
            ("9007199254740993", 9007199254740992), ("1E-2", 0.01),
        ] as [(String, Double)] {
            #expect(try double("{\"doubleValue\":\(string)}").bitPattern == expected.bitPattern, "\(string)")
        }
        #expect(try double("{\"doubleValue\":\"NaN\"}").isNaN)
        for string in ["1e400", "\"nan\"", "\"inf\"", "\"0x1p3\"", "null"] {
            #expect(refusal { () throws(Status) in try double("{\"doubleValue\":\(string)}") } != nil, "\(string)")
        }
    }

    private func value(_ json: String) throws(Status) -> Value {
        try CursorMessage(json: "{\"values\":[\(json)]}").values[0]
    }

    private func integer(_ json: String) throws(Status) -> Int64 {
        guard case .integer(let number) = try value(json) else { throw .internalError("no integer") }
        return number
    }

    private func double(_ json: String) throws(Status) -> Double {
        guard case .double(let number) = try value(json) else { throw .internalError("no double") }
        return number
    }

    @Test func valuesAreReadInEveryForm() throws {
        #expect(try value(#"{"nullValue":"NULL_VALUE"}"#) == .null)
        #expect(try value(#"{"null_value":0}"#) == .null)
        #expect(try value(#"{"bytesValue":"-_8"}"#) == .bytes([0xfb, 0xff]))
        #expect(try value(#"{"geoPointValue":{"latitude":"1.5"}}"#) == .geoPoint(GeoPoint(latitude: 1.5, longitude: 0)))
        #expect(
            try value(#"{"timestampValue":"2024-01-01T01:00:00.0000019+01:00"}"#)
                == .timestamp(Timestamp(microseconds: 1_704_067_200_000_001)))
        #expect(
            try value(#"{"timestampValue":"1969-12-31T23:59:59.999999999Z"}"#)
                == .timestamp(Timestamp(microseconds: -1)))
        #expect(try value(#"{"mapValue":{}}"#) == .map(MapValue()))
        #expect(try value(#"{"stringValue":null,"arrayValue":{"values":null}}"#) == .array([]))
    }

    @Test func wrongValuesAreRefused() {
        #expect(
            refusal { () throws(Status) in try value("{}") } == "Cannot convert firestore.v1.Value with type unset.")
        #expect(
            refusal { () throws(Status) in try value(#"{"stringValue":null}"#) }
                == "Cannot convert firestore.v1.Value with type unset.")
        for (name, kind) in [
            ("fieldReferenceValue", "FIELD_REFERENCE_VALUE"), ("functionValue", "FUNCTION_VALUE"),
            ("pipelineValue", "PIPELINE_VALUE"), ("variableReferenceValue", "VARIABLE_REFERENCE_VALUE"),
        ] {
            #expect(
                refusal { () throws(Status) in try value("{\"\(name)\":\"x\"}") }
                    == "Value type is not supported: \(kind)")
        }
        #expect(
            refusal { () throws(Status) in try value(#"{"timestampValue":"2024-13-01T00:00:00Z"}"#) }?.contains(
                "Invalid time format") == true)
        #expect(
            refusal { () throws(Status) in try value(#"{"mapValue":{"x":1}}"#) }?.contains("Unknown name \"x\"") == true
        )
    }

    @Test func enumerationsCanBeWrittenAsNumbers() throws {
        let change = TargetChangeMessage(targetChangeType: .current, targetIds: [1])
        #expect(string(change.json(JSONOptions(enumsAsNumbers: true))) == #"{"targetChangeType":3,"targetIds":[1]}"#)
        // A value that the proto does not declare stays a number.
        #expect(
            string(TargetChangeMessage(targetChangeType: .init(rawValue: 99)).json()) == #"{"targetChangeType":99}"#)
        #expect(try TargetChangeMessage(json: #"{"targetChangeType":99}"#).targetChangeType.rawValue == 99)
    }

    @Test func parametersOfURLsBind() throws {
        var list = ListDocumentsRequest()
        for (name, value) in [
            ("mask.fieldPaths", "a"), ("mask.field_paths", "`b`.c"), ("pageSize", "10"), ("show_missing", "true"),
            ("orderBy", "a desc"), ("readTime", "2024-01-01T00:00:00Z"),
        ] { try list.set(parameter: name, value) }
        #expect(
            list.mask?.fieldPaths == ["a", "`b`.c"] && list.pageSize == 10 && list.showMissing
                && list.orderBy == "a desc")
        #expect(list.readTime?.seconds == 1_704_067_200)
        var delete = DeleteDocumentRequest()
        try delete.set(parameter: "currentDocument.exists", "false")
        #expect(delete.currentDocument?.exists == false)
        var field = UpdateFieldRequest()
        try field.set(parameter: "updateMask", "indexConfig,ttlConfig")
        #expect(field.updateMask == ["index_config", "ttl_config"])
        #expect(
            refusal { () throws(Status) in try list.set(parameter: "nope.x", "1") }
                == "Invalid JSON payload received. Unknown name \"nope.x\": Cannot bind query parameter. "
                + "Field 'nope.x' could not be found in request message.")
        #expect(
            refusal { () throws(Status) in try list.set(parameter: "pageSize", "many") }
                == "Invalid value at 'page_size' (TYPE_INT32), \"many\"")
    }

    @Test func anyStatesItsType() throws {
        let details = BadRequestMessage(fieldViolations: [.init(field: "f", description: "d")])
        let status = StatusMessage(
            code: 3, message: "m",
            details: [AnyMessage(details), AnyMessage(typeURL: "type.googleapis.com/x.Y", value: [1])])
        let json =
            #"{"code":3,"message":"m","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"f","description":"d"}]},{"@type":"type.googleapis.com/x.Y","value":"AQ=="}]}"#
        #expect(string(status.json()) == json)
        #expect(try StatusMessage(json: json).protobuf() == status.protobuf())
        let reordered =
            #"{"details":[{"fieldViolations":[{"field":"f"}],"@type":"type.googleapis.com/google.rpc.BadRequest"}]}"#
        let unpacked = try StatusMessage(json: reordered).details[0].unpacked(BadRequestMessage.self)
        #expect(unpacked?.fieldViolations.first?.field == "f")
        #expect(try status.details[0].unpacked(RetryInfoMessage.self) == nil)
    }
}
