@testable import HearthFirestoreServer
import HearthTestSupport
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthTestDoubles
import HearthWire
import Testing

@testable import HearthHost

/// A write that was made is reported as made, whatever fails after it.
@Suite("Writes that are answered with their document")
struct WrittenDocumentTests {
    private static let formats: [MessageFormat] = [.protobuf, .json(JSONOptions())]

    private func fields(_ number: Int64) -> MapValue {
        MapValue([MapValue.Field(name: "n", value: .integer(number)), MapValue.Field(name: "m", value: .integer(7))])
    }

    private func answer(
        _ bench: StreamBench, _ format: MessageFormat, _ body: @escaping @Sendable (TestCall) -> Void
    ) async throws -> DocumentMessage {
        let call = TestCall(bench.loop, format: format)
        await call.run { body(call) }
        await until { call.isFinished }
        #expect(call.end == .ok)
        let bytes = try #require(call.messages.first)
        switch format {
        case .protobuf: return try DocumentMessage(protobuf: bytes)
        case .json: return try DocumentMessage(json: bytes, at: "")
        }
    }

    @Test("are answered without reading the store")
    func withoutReading() async throws {
        let store = FaultyStore()
        let bench = try StreamBench(store: store)
        let root = StreamBench.root + "/documents"
        try await bench.database.put("c/old", ["n": .integer(1), "kept": .integer(5)])
        // From here on all reads fail; commits use the writer's own transactions.
        store.setUnreadable(true)
        #expect(throws: Status.self) { _ = try bench.database.view() }
        for (index, format) in Self.formats.enumerated() {
            let number = Int64(10 + index)
            let fields = fields(number)
            let updated = try await answer(bench, format) { call in
                var request = UpdateDocumentRequest()
                request.document = DocumentMessage(name: "\(root)/c/old", fields: fields)
                request.updateMask = DocumentMaskMessage(fieldPaths: ["n"])
                bench.service.updateDocument(request, sizeBytes: 1000, call)
            }
            #expect(updated.name == "\(root)/c/old")
            #expect(updated.fields["n"] == .integer(number) && updated.fields["kept"] == .integer(5))
            #expect(updated.updateTime != nil && updated.createTime != nil && updated.updateTime != updated.createTime)

            let new = try await answer(bench, format) { call in
                var request = UpdateDocumentRequest()
                request.document = DocumentMessage(name: "\(root)/c/new\(index)", fields: fields)
                request.mask = DocumentMaskMessage(fieldPaths: ["m"])
                bench.service.updateDocument(request, sizeBytes: 1000, call)
            }
            #expect(new.fields["n"] == nil && new.fields["m"] == .integer(7) && new.updateTime == new.createTime)

            for id in ["chosen\(index)", ""] {
                let created = try await answer(bench, format) { call in
                    var request = CreateDocumentRequest()
                    request.parent = root
                    request.collectionId = "c"
                    request.documentId = id
                    request.document = DocumentMessage(name: "", fields: fields)
                    bench.service.createDocument(request, sizeBytes: 1000, call)
                }
                #expect(created.name.hasPrefix("\(root)/c/\(id)") && created.fields["n"] == .integer(number))
            }
        }
        store.setUnreadable(false)
        let view = try bench.database.view()
        for path in ["c/new0", "c/new1", "c/chosen0", "c/chosen1"] {
            #expect(try view.document(ResourcePath(path.split(separator: "/").map(String.init))) != nil)
        }
    }
}
