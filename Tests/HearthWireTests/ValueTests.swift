import HearthModel
import HearthWire
import Testing

@Suite struct ValueTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func randomFieldsSurviveBothForms(_ seed: UInt64) throws {
        var generator = ValueGenerator(seed: seed)
        for _ in 0..<500 {
            let fields = generator.map()
            let encoded = FieldsCodec.encode(fields)
            #expect(try FieldsCodec.decode(encoded) == fields)
            let message = DocumentMessage(fields: fields)
            #expect(message.protobuf() == encoded)
            let json = message.json()
            #expect(try DocumentMessage(json: json).fields == fields, "seed \(seed): \(string(json))")
            var transcoded = JSONWriter()
            try transcoded.document(EncodedDocument(name: "", fields: encoded))
            #expect(transcoded.bytes == json)
        }
    }

    @Test func equalTreesHaveEqualBytes() throws {
        let sorted =
            #"{"fields":{"a":{"doubleValue":"NaN"},"b":{"mapValue":{"fields":{"x":{"nullValue":null},"y":{"integerValue":1}}}}}}"#
        let shuffled =
            #"{"fields":{"b":{"mapValue":{"fields":{"y":{"integerValue":"1"},"x":{"nullValue":null}}}},"a":{"doubleValue":"NaN"}}}"#
        #expect(try DocumentMessage(json: sorted).protobuf() == DocumentMessage(json: shuffled).protobuf())
        // A NaN with a payload, and an entry whose value precedes its key.
        let odd: [UInt8] = [0x12, 14, 0x12, 9, 0x19, 1, 0, 0, 0, 0, 0, 0xf8, 0xff, 0x0a, 1, 0x61]
        #expect(
            try DocumentMessage(protobuf: odd).protobuf()
                == FieldsCodec.encode(MapValue([.init(name: "a", value: .double(.nan))])))
    }

    @Test func laterEntriesOfOneNameWin() throws {
        let entry: (UInt8, UInt8) -> [UInt8] = { name, number in [0x12, 7, 0x0a, 1, name, 0x12, 2, 0x10, number] }
        let fields = try DocumentMessage(protobuf: entry(0x62, 1) + entry(0x61, 2) + [0x0a, 1, 0x6e] + entry(0x62, 3))
            .fields
        #expect(fields == MapValue([.init(name: "a", value: .integer(2)), .init(name: "b", value: .integer(3))]))
    }

    @Test func entriesMayLackAKey() throws {
        #expect(
            try DocumentMessage(protobuf: [0x12, 4, 0x12, 2, 0x10, 1]).fields
                == MapValue([.init(name: "", value: .integer(1))]))
        #expect(
            refusal { () throws(Status) in try DocumentMessage(protobuf: [0x12, 3, 0x0a, 1, 0x61]) }
                == "Cannot convert firestore.v1.Value with type unset.")
    }

    @Test func namesThatOnlyLookEqualAreDistinct() throws {
        let fields = MapValue([.init(name: "é", value: .integer(1)), .init(name: "e\u{301}", value: .integer(2))])
        #expect(fields.count == 2)
        #expect(try FieldsCodec.decode(FieldsCodec.encode(fields)) == fields)
    }

    @Test func onlyWellFormedVectorsAreVectors() throws {
        func decoded(_ members: String) throws -> Value? {
            try DocumentMessage(json: #"{"fields":{"v":{"mapValue":{"fields":{\#(members)}}}}}"#).fields["v"]
        }
        let type = #""__type__":{"stringValue":"__vector__"}"#
        #expect(
            try decoded(type + #","value":{"arrayValue":{"values":[{"doubleValue":1},{"doubleValue":2}]}}"#)
                == .vector([1, 2]))
        #expect(try decoded(type + #","value":{"arrayValue":{}}"#) == .vector([]))
        for members in [
            type, type + #","value":{"arrayValue":{"values":[{"integerValue":"1"}]}}"#,
            type + #","value":{"doubleValue":1}"#,
            type + #","value":{"arrayValue":{"values":[{"doubleValue":1}]}},"x":{"nullValue":null}"#,
            #""__type__":{"stringValue":"other"},"value":{"arrayValue":{"values":[{"doubleValue":1}]}}"#,
        ] {
            guard case .map(let map) = try decoded(members) else {
                Issue.record("a vector: \(members)")
                continue
            }
            let binary = try DocumentMessage(
                protobuf: DocumentMessage(fields: MapValue([.init(name: "v", value: .map(map))])).protobuf())
            #expect(binary.fields["v"] == .map(map))
        }
    }

    @Test func timesAreFlooredToMicroseconds() throws {
        // timestamp_value { seconds: -1, nanos: 999999999 }
        let nanos: [UInt8] = [0x10, 0xff, 0x93, 0xeb, 0xdc, 0x03]
        let seconds: [UInt8] = [0x08] + [UInt8](repeating: 0xff, count: 9) + [1]
        let time: [UInt8] = [0x52, UInt8(seconds.count + nanos.count)] + seconds + nanos
        let cursor = try CursorMessage(protobuf: [0x0a, UInt8(time.count)] + time)
        #expect(cursor.values == [.timestamp(Timestamp(microseconds: -1))])
        let beyond: [UInt8] = [0x0a, 10, 0x52, 8, 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40]
        #expect(
            refusal { () throws(Status) in try CursorMessage(protobuf: beyond) }?.contains("must lie between") == true)
    }

    @Test(
        arguments: [
            ([0x9a, 1, 0], "FIELD_REFERENCE_VALUE"), ([0xb2, 1, 0], "VARIABLE_REFERENCE_VALUE"),
            ([0xa2, 1, 0], "FUNCTION_VALUE"),
            ([0xaa, 1, 0], "PIPELINE_VALUE"),
        ] as [([UInt8], String)])
    func valuesOfPipelinesAreRefused(_ value: [UInt8], _ name: String) {
        #expect(
            refusal { () throws(Status) in try CursorMessage(protobuf: [0x0a, 3] + value) }
                == "Value type is not supported: \(name)")
    }
}
