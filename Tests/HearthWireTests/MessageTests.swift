import HearthModel
import HearthWire
import Testing

@Suite struct MessageTests {
    @Test func requestRoundTripsThroughBothForms() throws {
        let request = CommitRequest(
            database: "projects/p/databases/d",
            writes: [
                WriteMessage(
                    update: DocumentMessage(
                        name: "projects/p/databases/d/documents/c/x",
                        fields: MapValue([
                            .init(name: "b", value: .array([.integer(-1), .vector([1, 2.5])])),
                            .init(name: "a", value: .map(MapValue([.init(name: "é", value: .double(-0.0))]))),
                        ])),
                    updateMask: DocumentMaskMessage(fieldPaths: ["a", "b"]),
                    currentDocument: PreconditionMessage(exists: false)),
                WriteMessage(delete: "projects/p/databases/d/documents/c/y"),
            ], transaction: [1, 2, 255])
        let bytes = request.protobuf()
        #expect(try CommitRequest(protobuf: bytes).protobuf() == bytes)
        let json = request.json()
        #expect(try CommitRequest(json: json).protobuf() == bytes)
        #expect(try CommitRequest(json: json).json() == json)
    }
}
