import HearthModel
import HearthWire
import Testing

@Suite struct MessageTests {
    @Test(arguments: TestData.goldenMessages.indices)
    func agreesWithGooglesLibrary(_ index: Int) throws {
        let golden = TestData.goldenMessages[index]
        let type = try #require(messageTypes[golden.type])
        let binary = bytes(hex: golden.hex)
        let fromBinary = try type.init(protobuf: binary)
        #expect(hex(fromBinary.protobuf()) == golden.hex)
        #expect(string(fromBinary.json()) == golden.json)
        let fromJSON = try type.init(json: golden.json)
        #expect(string(fromJSON.json()) == golden.json)
        #expect(hex(fromJSON.protobuf()) == golden.hex)
    }

    @Test func lastMemberOfAOneofWins() throws {
        // missing = "x", then found = {}
        let response = try BatchGetDocumentsResponse(protobuf: [0x12, 1, 0x78, 0x0a, 0])
        #expect(response.missing == nil && response.found != nil)
        let other = try BatchGetDocumentsResponse(protobuf: [0x0a, 0, 0x12, 1, 0x78])
        #expect(other.missing == "x" && other.found == nil)
        // transaction, then read_time, with a query_type that must be kept
        let request = try RunQueryRequest(protobuf: [0x12, 0, 0x2a, 1, 7, 0x3a, 0])
        #expect(request.structuredQuery != nil && request.transaction == nil && request.readTime != nil)
    }

    @Test func splitMessagesAreMerged() throws {
        // update_mask twice, with a path each
        let write = try WriteMessage(protobuf: [0x1a, 3, 0x0a, 1, 0x61, 0x1a, 3, 0x0a, 1, 0x62])
        #expect(write.updateMask?.fieldPaths == ["a", "b"])
        // A merged message's oneof still has one member: current_document { exists }, then { update_time }
        let merged = try WriteMessage(protobuf: [0x22, 2, 0x08, 1, 0x22, 2, 0x12, 0])
        #expect(merged.currentDocument?.exists == nil && merged.currentDocument?.updateTime != nil)
    }

    @Test func packedAndSingleNumbersAreRead() throws {
        let change = try DocumentChangeMessage(protobuf: [0x28, 1, 0x2a, 3, 2, 0xac, 2, 0x28, 4])
        #expect(change.targetIds == [1, 2, 300, 4])
    }

    @Test func unknownFieldsAreSkipped() throws {
        // varint 15, fixed64 16, bytes 17, group 18 with a field and a group in it, fixed32 19, then name
        let unknown: [UInt8] =
            [0x78, 0x96, 1] + [0x81, 1, 1, 2, 3, 4, 5, 6, 7, 8] + [0x8a, 1, 2, 9, 9]
            + [0x93, 1, 0x08, 1, 0x0b, 0x0c, 0x94, 1] + [0x9d, 1, 1, 2, 3, 4]
        let request = try GetDocumentRequest(protobuf: unknown + [0x0a, 1, 0x6e] + unknown)
        #expect(request.name == "n")
        // A known number with another wire type is unknown as well.
        #expect(try GetDocumentRequest(protobuf: [0x08, 5, 0x0a, 1, 0x6e]).name == "n")
    }

    @Test(
        arguments: [
            ("a length beyond the end", [0x0a, 5, 0x6e]),
            ("a varint without end", [0x78] + [UInt8](repeating: 0xff, count: 11)),
            ("field number zero", [0x02, 0]),
            ("an end without a group", [0x0c]),
            ("a group without end", [0x0b, 0x10, 1]),
            ("a group that ends another", [0x0b, 0x14]),
            ("wire type 6", [0x0e]),
            ("half a fixed64", [0x09, 1, 2, 3]),
            ("a huge length", [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
            ("invalid UTF-8", [0x0a, 1, 0xff]),
            ("an overlong form", [0x0a, 2, 0xc0, 0x80]),
            ("a surrogate", [0x0a, 3, 0xed, 0xa0, 0x80]),
        ] as [(String, [UInt8])])
    func malformedBytesAreRefused(_ name: String, _ bytes: [UInt8]) {
        #expect(refusal { () throws(Status) in try GetDocumentRequest(protobuf: bytes) } != nil, "\(name)")
    }

    @Test func deepMessagesAreRefused() {
        var value: [UInt8] = [0x58, 0]
        for _ in 0..<60 {
            let array = [0x0a] + length(value)
            value = [0x4a] + length(array)
        }
        #expect(
            refusal { () throws(Status) in try CursorMessage(protobuf: [0x0a] + length(value)) }?.contains(
                "nests deeper") == true)
        var groups = [UInt8](repeating: 0x0b, count: 5000)
        groups += [UInt8](repeating: 0x0c, count: 5000)
        #expect(
            refusal { () throws(Status) in try GetDocumentRequest(protobuf: groups) }?.contains("nests deeper") == true)
        let json = String(repeating: "{\"arrayValue\":{\"values\":[", count: 60)
        #expect(
            refusal { () throws(Status) in try CursorMessage(json: "{\"values\":[" + json) }?.contains("nests deeper")
                == true)
        let brackets = "{\"structuredPipeline\":" + String(repeating: "[", count: 100_000)
        #expect(
            refusal { () throws(Status) in try ExecutePipelineRequest(json: brackets) }?.contains("nests deeper")
                == true)
    }

    @Test func documentsTwentyLevelsDeepPassBothDecoders() throws {
        var value = Value.integer(1)
        for level in 0..<21 {
            value = level % 2 == 0 ? .map(MapValue([.init(name: "a", value: value)])) : .array([value])
        }
        let request = CommitRequest(writes: [
            WriteMessage(update: DocumentMessage(name: "n", fields: MapValue([.init(name: "f", value: value)])))
        ])
        #expect(try CommitRequest(protobuf: request.protobuf()).protobuf() == request.protobuf())
        #expect(try CommitRequest(json: request.json()).protobuf() == request.protobuf())
    }

    private func length(_ content: [UInt8]) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.lengthDelimited(content)
        return writer.bytes
    }

    @Test func oneofMembersAreWrittenEvenWhenZero() {
        #expect(ListenRequest(removeTarget: 0).protobuf() == [0x18, 0])
        #expect(string(PreconditionMessage(exists: false).json()) == "{\"exists\":false}")
        #expect(string(RunQueryResponse(done: false).json()) == "{\"done\":false}")
        #expect(string(RunQueryResponse(skippedResults: 0).json()) == "{}")
    }

    @Test func contentMovesForLongLengths() throws {
        for count in [126, 127, 128, 129, 16_383, 16_384, 2_100_000] {
            let request = BatchGetDocumentsRequest(
                mask: DocumentMaskMessage(fieldPaths: [String(repeating: "x", count: count)]))
            let again = try BatchGetDocumentsRequest(protobuf: request.protobuf())
            #expect(again.mask?.fieldPaths.first?.utf8.count == count)
        }
    }
}
