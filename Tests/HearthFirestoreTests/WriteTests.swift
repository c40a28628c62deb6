import Foundation
import HearthModel
import HearthSync
import Testing

@testable import HearthFirestore

struct WriteTests {
    private let bench: Bench

    init() throws { bench = try Bench() }

    private var writes: [[Mutation]] { bench.engine.state.with { $0.writes } }

    @Test func batches() async throws {
        let db = bench.firestore
        let batch = db.batch()
        batch.setData(["a": 1], forDocument: db.document("c/1"))
            .setData(["a": 1], forDocument: db.document("c/2"), merge: true)
            .setData(["a": 1, "b": 2], forDocument: db.document("c/3"), mergeFields: ["a"])
            .updateData(["a.b": 1], forDocument: db.document("c/4"))
            .deleteDocument(db.document("c/5"))
        try await batch.commit()
        let mutations = try #require(writes.first)
        #expect(mutations.map(\.key.string) == ["c/1", "c/2", "c/3", "c/4", "c/5"])
        #expect(mutations.map(\.precondition) == [.none, .none, .none, .exists(true), .none])
        guard case .set = mutations[0].kind, case .patch(_, let mask) = mutations[2].kind,
            case .delete = mutations[4].kind
        else {
            Issue.record("kinds")
            return
        }
        #expect(mask.map(\.string) == ["a"])
    }

    @Test func emptyBatchesSucceedAtOnce() async throws {
        try await bench.firestore.batch().commit()
        #expect(writes.isEmpty)
        await withCheckedContinuation { continuation in
            bench.firestore.batch().commit { error in
                #expect(error == nil)
                continuation.resume()
            }
        }
    }

    @Test func committedBatchesAreClosed() throws {
        let batch = bench.firestore.batch()
        let document = bench.firestore.document("c/d")
        _ = try batch.take()
        #expect(throws: Status.self) { _ = try batch.take() }
        #expect(throws: Status.self) {
            try batch.checkedAdd(document) { (builder) throws(Status) in try builder.set([:], document.key) }
        }
        let other = try Bench().firestore.document("c/d")
        #expect(throws: Status.self) {
            try bench.firestore.batch().checkedAdd(other) { (builder) throws(Status) in try builder.set([:], other.key)
            }
        }
    }

    @Test func errorsReachCompletions() async throws {
        bench.engine.state.with { $0.writeResult = Status(.permissionDenied, "no") }
        let error = await withCheckedContinuation { continuation in
            bench.firestore.document("c/d").setData(["a": 1]) { error in
                continuation.resume(returning: error.map { ($0 as NSError).code })
            }
        }
        #expect(error == 7)
        await #expect(throws: NSError.self) { try await bench.firestore.document("c/d").delete() }
    }

    @Test func addDocument() async throws {
        let added = try await bench.firestore.collection("c").addDocument(data: ["a": 1])
        #expect(added.documentID.count == 20)
        #expect(writes[0][0].key == added.key)
        struct City: Encodable { var name: String }
        let other = try bench.firestore.collection("c").addDocument(from: City(name: "Bern"))
        guard case .set(let fields) = writes[1][0].kind else {
            Issue.record("a set")
            return
        }
        #expect(writes[1][0].key == other.key)
        #expect(fields["name"] == .string("Bern"))
    }

    @Test func transforms() throws {
        let builder = MutationBuilder(bench.firestore)
        let key = ResourcePath(["c", "d"])
        let mutation = try builder.set(
            [
                "i": FieldValue.increment(Int64(2)), "d": FieldValue.increment(0.5), "lo": FieldValue.minimum(Int64(1)),
                "hi": FieldValue.maximum(2.5), "u": FieldValue.arrayUnion([1, "a"]), "r": FieldValue.arrayRemove([1]),
                "t": FieldValue.serverTimestamp(),
            ], key)
        let operations = Dictionary(uniqueKeysWithValues: mutation.transforms.map { ($0.path.string, $0.operation) })
        #expect(operations.count == 7)
        if case .increment(.integer(2))? = operations["i"], case .increment(.double(0.5))? = operations["d"],
            case .minimum(.integer(1))? = operations["lo"], case .maximum(.double(2.5))? = operations["hi"],
            case .appendMissingElements(let added)? = operations["u"], case .removeAllFromArray? = operations["r"],
            case .requestTime? = operations["t"]
        {
            #expect(added == [.integer(1), .string("a")])
        } else {
            Issue.record("operations: \(operations)")
        }
    }

    @Test func otherCalls() async throws {
        let db = bench.firestore
        try await db.enableNetwork()
        try await db.disableNetwork()
        try await db.waitForPendingWrites()
        try await db.terminate()
        try await db.terminate()
        #expect(
            bench.made.with { $0!.state.with { $0.calls } } == [
                "enableNetwork", "disableNetwork", "waitForPendingWrites", "terminate",
            ])
        #expect(throws: Status.self) { _ = try db.checkedEngine() }
    }
}
