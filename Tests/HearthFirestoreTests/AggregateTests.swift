import Foundation
import HearthModel
import HearthSync
import HearthTestSupport
import Testing

@testable import HearthFirestore

struct AggregateTests {
    private let bench: Bench
    private let query: Query

    init() throws {
        bench = try Bench()
        query = bench.firestore.collection("c")
    }

    @Test func fromServer() async throws {
        bench.engine.state.with {
            $0.aggregationResult = .success([
                "aggregation_0": .integer(3), "aggregation_1": .double(1.5), "aggregation_2": .null,
            ])
        }
        let aggregate = query.aggregate([
            .count(), .sum("a.b"), .average(FieldPath(["x y"])), .count(), .sum(FieldPath(["a", "b"])),
        ])
        let snapshot = try await aggregate.getAggregation(source: .server)
        let (_, asked) = try #require(bench.engine.state.with { $0.aggregations.first })
        #expect(asked.map(\.alias) == ["aggregation_0", "aggregation_1", "aggregation_2"], "each figure once")
        #expect(snapshot.count == 3)
        #expect(snapshot.get(.count()) as? Int == 3)
        #expect(snapshot.get(.sum("a.b")) as? Double == 1.5)
        #expect(snapshot.get(.average(FieldPath(["x y"]))) is NSNull)
        #expect(throws: Status.self) { _ = try snapshot.checkedValue(of: .sum("other")) }
        #expect(snapshot.query == aggregate)
    }

    @Test func serverErrors() async {
        bench.engine.state.with { $0.aggregationResult = .failure(.unavailable("off")) }
        let code = await withCheckedContinuation { continuation in
            query.count.getAggregation(source: .server) { snapshot, error in
                #expect(snapshot == nil)
                continuation.resume(returning: (error as NSError?)?.code)
            }
        }
        #expect(code == 14)
    }

    @Test func nothingToAggregateIsRefused() {
        #expect(throws: Status.self) { _ = try AggregateQuery(query: query, fields: []) }
    }

    private var documents: [ClientDocument] {
        [
            bench.document("c/1", ["n": .integer(1), "x": .double(0.5)]),
            bench.document("c/2", ["n": .integer(2), "x": .string("no number")]),
            bench.document("c/3", ["n": .integer(3)]),
        ]
    }

    @Test func fromCache() async throws {
        bench.engine.state.with { [bench, query] in
            $0.cachedView = bench.view(query.model, documents, mutated: [ResourcePath(["c", "1"])], isFromCache: true)
        }
        let count = try await query.count.getAggregation(source: .cache)
        #expect(count.count == 3)
        #expect(count.metadata == SnapshotMetadata(hasPendingWrites: true, isFromCache: true))
        let sums = try await query.aggregate([.count(), .sum("n"), .average("n")]).getAggregation(source: .cache)
        #expect(sums.get(.sum("n")) as? Int == 6)
        #expect(sums.get(.average("n")) as? Double == 2)
        // As at the server: only documents with all fields count, and values that are not numbers add nothing.
        let both = try await query.aggregate([.count(), .sum("x"), .average("n")]).getAggregation(source: .cache)
        #expect(both.count == 2)
        #expect(both.get(.sum("x")) as? Double == 0.5)
        #expect(both.get(.average("n")) as? Double == 1.5)
        let none = try await query.aggregate([.sum("z"), .average("z")]).getAggregation(source: .cache)
        #expect(none.get(.sum("z")) as? Int == 0)
        #expect(none.get(.average("z")) is NSNull)
    }

    @Test func cachedLimitsCountDocumentsWithTheField() async throws {
        let limited = query.whereField("k", isGreaterThan: 0).limit(to: 1)
        let local = try limited.aggregate([.sum("n")]).localQuery()
        #expect(local.orders.map(\.field.string) == ["k", "n"])
        let counted = try limited.count.localQuery()
        #expect(counted == limited.model)
        // The order of the request does not matter: the server sorts by name.
        let several = try limited.aggregate([.average("w"), .sum("n"), .sum("w")]).localQuery()
        let fewer = try limited.aggregate([.sum("n"), .average("w")]).localQuery()
        #expect(several == fewer)
        #expect(several.orders.suffix(2).map(\.field.string) == ["n", "w"])
        #expect(local.limit == 1)
    }

    @Test func liveListener() async throws {
        let received = Locked<[Int]>([])
        let sum = query.aggregate([.sum("n")])
        let registration = sum.addSnapshotListener { snapshot, _ in
            received.with { $0.append(snapshot?.get(.sum("n")) as? Int ?? -1) }
        }
        let engine = bench.engine
        engine.raise(.success(bench.view(sum.query.model, documents)))
        // The results did not change.
        engine.raise(.success(bench.view(sum.query.model, documents, isFromCache: true)))
        engine.raise(.success(bench.view(sum.query.model, [documents[0]])))
        engine.raise(.failure(Status(.permissionDenied, "no")))
        #expect(await eventually { received.with { $0.count == 3 } })
        #expect(received.with { $0 } == [6, 1, -1])
        registration.remove()
        #expect(engine.state.with { $0.listens[0].isRemoved })
    }
}
