import HearthWire
import HearthModel

/// Entry points for fuzzing: for any bytes a decoder returns or throws, and accepted input survives a round trip. A
/// violated invariant traps, which the fuzzer detects.
package enum WireFuzzing {
    /// Passes the bytes to every binary decoder of network or file input.
    package static func fuzzProtobuf(_ bytes: [UInt8]) {
        for type in messages { roundTripProtobuf(type, bytes) }
        fuzzFields(bytes)
    }

    /// Passes the string to every JSON decoder of network or file input.
    package static func fuzzJSON(_ string: [UInt8]) {
        for type in messages { roundTripJSON(type, string) }
        _ = RFC3339.parse(String(decoding: string, as: UTF8.self))
        _ = DurationMessage(parsing: String(decoding: string, as: UTF8.self))
        ignoringRefusal { () throws(Status) in _ = try OrderByString.parse(String(decoding: string, as: UTF8.self)) }
    }

    private static let messages: [any WireMessage.Type] = [
        CommitRequest.self, RunQueryRequest.self, RunAggregationQueryRequest.self, BatchGetDocumentsRequest.self,
        ListenRequest.self, ListenResponse.self, WriteRequest.self, WriteResponse.self, ExecutePipelineRequest.self,
        PartitionQueryResponse.self, BatchWriteResponse.self, BundleElementMessage.self, RunQueryResponse.self,
        RunAggregationQueryResponse.self, CreateIndexRequest.self, UpdateFieldRequest.self, UpdateDatabaseRequest.self,
        OperationMessage.self, StatusMessage.self,
    ]

    private static func roundTripProtobuf(_ type: any WireMessage.Type, _ bytes: [UInt8]) {
        ignoringRefusal { () throws(Status) in
            let message = try type.init(protobuf: bytes)
            let canonical = message.protobuf()
            do throws(Status) {
                let again = try type.init(protobuf: canonical)
                precondition(again.protobuf() == canonical, "\(type): the binary form isn't stable")
            } catch {
                preconditionFailure("\(type): refuses its own binary form: \(error)")
            }
            _ = message.json()
            _ = message.json(JSONOptions(enumsAsNumbers: true))
        }
    }

    private static func roundTripJSON(_ type: any WireMessage.Type, _ string: [UInt8]) {
        ignoringRefusal { () throws(Status) in
            let message = try type.init(json: string)
            let canonical = message.json()
            do throws(Status) {
                let again = try type.init(json: canonical)
                precondition(again.json() == canonical, "\(type): the JSON form isn't stable")
            } catch {
                preconditionFailure("\(type): refuses its own JSON form: \(error)")
            }
            _ = message.protobuf()
        }
    }

    /// Stored fields are read by several readers, which must agree.
    private static func fuzzFields(_ bytes: [UInt8]) {
        ignoringRefusal { () throws(Status) in
            let fields = try FieldsCodec.decode(bytes)
            let canonical = FieldsCodec.encode(fields)
            let reader = FieldsReader(canonical)
            for field in fields.fields {
                let value = try reader.value(at: FieldPath(field.name))
                precondition(value == field.value, "a lookup differs from the decoded field")
                let only = try FieldsCodec.project(canonical, paths: [FieldPath(field.name)])
                let decoded = try FieldsCodec.decode(only)
                precondition(decoded == MapValue([field]), "a projection differs from the field")
            }
            var transcoded = JSONWriter()
            try transcoded.fields(encoded: canonical)
            var written = JSONWriter()
            written.fields(fields)
            precondition(transcoded.bytes == written.bytes, "transcoded JSON differs from written JSON")
        }
        // Readers of stored bytes must handle damaged bytes, too.
        let reader = FieldsReader(bytes)
        ignoringRefusal { () throws(Status) in _ = try reader.value(at: FieldPath(segments: ["a", "b"])) }
        ignoringRefusal { () throws(Status) in
            for entry in try reader.entries() { _ = try reader.typeClass(of: entry.value) }
        }
        ignoringRefusal { () throws(Status) in
            _ = try FieldsCodec.project(bytes, paths: [FieldPath("a"), FieldPath(segments: ["b", "c"])])
        }
        ignoringRefusal { () throws(Status) in
            var writer = JSONWriter()
            try writer.fields(encoded: bytes)
        }
    }

    private static func ignoringRefusal(_ body: () throws(Status) -> Void) {
        do throws(Status) { try body() } catch { precondition(error.code != .ok) }
    }
}
