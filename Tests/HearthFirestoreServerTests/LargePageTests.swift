import HearthTestSupport
import HearthConcurrency
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Testing

@testable import HearthFirestoreServer

/// Responses and windows of a few hundred documents are also limited by their bytes.
@Suite("Pages and windows of large documents")
struct LargePageTests {
    private static let count = 12
    private static let names = (0..<count).map { "c/\(10 + $0)" }

    private static func fill(_ bench: StreamBench) async throws {
        let string = Value.string(String(repeating: "x", count: 400_000))
        for (number, name) in names.enumerated() {
            try await bench.database.put(name, ["n": .integer(Int64(number)), "body": string])
        }
        // A missing document that has documents below it.
        try await bench.database.put("c/99/d/1", [:])
    }

    private func page(_ bench: StreamBench, _ request: ListDocumentsRequest) async throws -> ListDocumentsResponse {
        let call = TestCall(bench.loop, format: .protobuf)
        await call.run { bench.service.listDocuments(request, call) }
        await until { call.isFinished }
        #expect(call.end == .ok)
        return try ListDocumentsResponse(protobuf: try #require(call.messages.first))
    }

    private func request(order: String = "", showsMissing: Bool = false) -> ListDocumentsRequest {
        var request = ListDocumentsRequest()
        request.parent = StreamBench.root + "/documents"
        request.collectionId = "c"
        request.pageSize = 300
        request.orderBy = order
        request.showMissing = showsMissing
        return request
    }

    @Test("end after a megabyte of documents", arguments: [("", false), ("n desc", false), ("", true)])
    func pages(order: String, showsMissing: Bool) async throws {
        let bench = try StreamBench()
        try await Self.fill(bench)
        var request = request(order: order, showsMissing: showsMissing)
        var found: [String] = []
        repeat {
            let page = try await page(bench, request)
            #expect(!page.documents.isEmpty && page.documents.count(where: { $0.fields.count > 0 }) <= 3)
            found += page.documents.map(\.name)
            request.pageToken = page.nextPageToken
        } while !request.pageToken.isEmpty
        var expected = (order.isEmpty ? Self.names : Self.names.reversed()) + (showsMissing ? ["c/99"] : [])
        expected = expected.map { StreamBench.root + "/documents/" + $0 }
        #expect(found == expected)
    }

    @Test("with small projections are longer", arguments: [false, true])
    func masked(showsMissing: Bool) async throws {
        let bench = try StreamBench()
        try await Self.fill(bench)
        var request = request(showsMissing: showsMissing)
        request.mask = DocumentMaskMessage(fieldPaths: ["n"])
        let page = try await page(bench, request)
        #expect(page.documents.count == Self.count + (showsMissing ? 1 : 0) && page.nextPageToken.isEmpty)
    }

    @Test("are found by workers when they need more work than a loop may do")
    func windows() async throws {
        let bench = try StreamBench()
        try await Self.fill(bench)
        let budget = MemoryBudget(bytesMax: 64 << 20, shareBytesMax: 64 << 20)
        func window(limit: Int, onLoop: Bool) throws -> WindowResult? {
            let parent = ResourceName(database: StreamBench.name, path: ResourcePath())
            let live = LiveQuery(
                try NormalizedQuery(Query(parent: parent, scope: .collection("c"), limit: limit)))
            let requester = Requester(account: 1, connection: 1, isAdministrator: false)
            let view = try bench.database.view()
            let run = try WindowRun(live, view, budget.reservation(for: requester), cacheMemory: nil)
            #expect(run.isLight)
            return try run.finish(onLoop: onLoop)
        }
        #expect(try window(limit: 4, onLoop: true)?.documents.count == 4)
        #expect(try window(limit: 12, onLoop: true) == nil)
        #expect(try window(limit: 12, onLoop: false)?.documents.count == 12)
        // Listeners do not notice the difference.
        let call = await bench.listen()
        await call.ask(StreamBench.add(1, limit: 11))
        await until { call.current == [1] }
        try await bench.database.put("c/first", ["n": .integer(-1)])
        await until { call.documents(of: 1).contains("\(StreamBench.root)/documents/c/first") }
        await until { call.documents(of: 1).count == 11 }
        await call.leave()
    }
}
