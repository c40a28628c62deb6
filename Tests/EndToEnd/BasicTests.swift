import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// Reads and writes of one program that another program observes.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct BasicTests {
    @Test func writesReachTheServerAndOthers() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let city = one.db.collection("cities").document("zrh")
        let there = two.db.document("cities/zrh")

        try await city.setData([
            "name": "Zürich", "n": 1, "tags": ["a"], "old": true, "at": ["lat": 47.4, "on": NSNull()],
        ])
        #expect(
            try await there.getDocument(source: .server).data().map { NSDictionary(dictionary: $0) }
                == ["name": "Zürich", "n": 1, "tags": ["a"], "old": true, "at": ["lat": 47.4, "on": NSNull()]])

        try await city.setData(["at": ["lon": 8.5], "new": "x"], merge: true)
        try await city.updateData([
            "n": FieldValue.increment(Int64(4)), "tags": FieldValue.arrayUnion(["b", "a"]), "old": FieldValue.delete(),
            "at.on": 7,
        ])
        let merged: NSDictionary = [
            "name": "Zürich", "n": 5, "tags": ["a", "b"], "at": ["lat": 47.4, "lon": 8.5, "on": 7], "new": "x",
        ]
        let read = try await there.getDocument()
        #expect(read.data().map { NSDictionary(dictionary: $0) } == merged)
        #expect(!read.metadata.isFromCache && !read.metadata.hasPendingWrites)

        try await city.setData(["n": 1])
        #expect(try await there.getDocument().data().map { NSDictionary(dictionary: $0) } == ["n": 1])
        try await city.delete()
        let deleted = try await there.getDocument()
        #expect(!deleted.exists && deleted.data() == nil && !deleted.metadata.isFromCache)
        await one.end()
        await two.end()
    }

    @Test func everyTypeOfValueIsReturned() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let values: [String: Any] = [
            "null": NSNull(), "flag": true, "small": -1, "large": Int64.max, "double": 0.1, "string": "ä€😀\u{0}",
            "bytes": Data([0, 255, 1]), "at": Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000),
            "location": GeoPoint(latitude: -33.9, longitude: 151.2), "list": [1, "two", ["three": 3]] as [Any],
            "vector": FieldValue.vector([1.5, 2.5]), "to": one.db.document("c/other"), "dots.in.name": ["x": 1],
        ]
        try await one.db.document("c/d").setData(values)
        let snapshot = try await two.db.document("c/d").getDocument(source: .server)
        let read = try #require(snapshot.data())
        #expect(Set(read.keys) == Set(values.keys))
        #expect(read["null"] is NSNull)
        #expect(read["flag"] as? Bool == true)
        #expect(read["small"] as? Int == -1)
        #expect(read["large"] as? Int64 == .max)
        #expect(read["double"] as? Double == 0.1)
        #expect(read["string"] as? String == "ä€😀\u{0}")
        #expect(read["bytes"] as? Data == Data([0, 255, 1]))
        #expect(read["at"] as? Timestamp == Timestamp(seconds: 1_700_000_000, nanoseconds: 123_456_000))
        #expect(read["location"] as? GeoPoint == GeoPoint(latitude: -33.9, longitude: 151.2))
        #expect((read["list"] as? [Any])?.count == 3)
        #expect(read["vector"] as? VectorValue == FieldValue.vector([1.5, 2.5]))
        #expect((read["to"] as? DocumentReference)?.path == "c/other")
        #expect(snapshot.get(FieldPath(["dots.in.name", "x"])) as? Int == 1)
        await one.end()
        await two.end()
    }

    @Test func updatingWhatIsNotThereFails() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        await #expect { try await device.db.document("c/none").updateData(["n": 1]) } throws: { error in
            FirestoreErrorCode.notFound ~= error
        }
        // The local estimate is reverted.
        #expect(try await !device.db.document("c/none").getDocument().exists)
        await device.end()
    }

    @Test func queriesAskTheServer() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let batch = one.db.batch()
        for n in 0..<20 {
            batch.setData(
                ["n": n, "even": n % 2 == 0, "tags": ["t\(n % 3)"], "city": ["name": "c\(n % 4)"]],
                forDocument: one.db.document("c/\(n < 10 ? "0" : "")\(n)"))
        }
        batch.setData(["n": 100], forDocument: one.db.document("c/05/c/inner"))
        try await batch.commit()
        let all = two.db.collection("c")
        func ids(_ query: Query) async throws -> [String] {
            let snapshot = try await query.getDocuments(source: .server)
            #expect(!snapshot.metadata.isFromCache)
            // The cache, which has the results now, returns the same.
            let cached = try await query.getDocuments(source: .cache)
            #expect(cached.documents.map(\.documentID) == snapshot.documents.map(\.documentID))
            return snapshot.documents.map(\.documentID)
        }
        #expect(try await ids(all).count == 20)
        #expect(try await ids(all.whereField("n", isGreaterThanOrEqualTo: 17)) == ["17", "18", "19"])
        #expect(try await ids(all.whereField("even", isEqualTo: true).limit(to: 3)) == ["00", "02", "04"])
        #expect(try await ids(all.order(by: "n", descending: true).limit(to: 2)) == ["19", "18"])
        #expect(try await ids(all.order(by: "n").limit(toLast: 2)) == ["18", "19"])
        #expect(try await ids(all.order(by: "n").start(after: [3]).end(before: [6])) == ["04", "05"])
        #expect(try await ids(all.whereField("tags", arrayContains: "t1").limit(to: 2)) == ["01", "04"])
        #expect(try await ids(all.whereField("n", in: [3, 1, 99])) == ["01", "03"])
        #expect(try await ids(all.whereField("city.name", isEqualTo: "c3").limit(to: 2)) == ["03", "07"])
        #expect(
            try await ids(
                all.whereFilter(
                    .orFilter([.whereField("n", isEqualTo: 2), .whereField("n", isGreaterThan: 18)])))
                == ["02", "19"])
        #expect(try await ids(two.db.collectionGroup("c").whereField("n", isGreaterThan: 18)) == ["19", "inner"])
        let start = try await two.db.document("c/17").getDocument()
        #expect(try await ids(all.order(by: "n").start(afterDocument: start)) == ["18", "19"])
        await one.end()
        await two.end()
    }

    @Test func batchesHappenTogetherOrNotAtAll() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        try await one.db.document("c/a").setData(["n": 1])
        let good = one.db.batch()
        good.setData(["n": 2], forDocument: one.db.document("c/b"))
        good.updateData(["n": FieldValue.increment(Int64(1))], forDocument: one.db.document("c/a"))
        try await good.commit()
        let bad = one.db.batch()
        bad.setData(["n": 9], forDocument: one.db.document("c/a"))
        bad.updateData(["n": 9], forDocument: one.db.document("c/none"))
        bad.deleteDocument(one.db.document("c/b"))
        await #expect { try await bad.commit() } throws: { error in FirestoreErrorCode.notFound ~= error }
        for device in [one, two] {
            let snapshot = try await device.db.collection("c").getDocuments(source: .server)
            #expect(QueryEvent(snapshot: snapshot).string == "a=2 b=2")
        }
        await one.end()
        await two.end()
    }

    @Test func aggregationsCountWhatTheServerHas() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        for n in 1...4 { try await one.db.document("c/\(n)").setData(["n": n]) }
        try await one.db.document("c/other").setData(["m": 0.5])
        let query = two.db.collection("c")
        #expect(try await query.count.getAggregation(source: .server).count == 5)
        let fields = [AggregateField.sum("n"), .average("n"), .count(), .sum("m")]
        let figures = try await query.whereField("n", isGreaterThan: 1).aggregate(Array(fields.prefix(3)))
            .getAggregation(source: .server)
        #expect(figures.get(fields[0]) as? Int == 9)
        #expect(figures.get(fields[1]) as? Double == 3)
        #expect(figures.count == 3)
        let nothing = try await two.db.collection("none").aggregate(fields).getAggregation(source: .server)
        #expect(nothing.get(fields[0]) as? Int == 0)
        #expect(nothing.get(fields[1]) is NSNull)

        try await two.db.disableNetwork()
        await #expect { try await query.count.getAggregation(source: .server) } throws: { error in
            FirestoreErrorCode.unavailable ~= error
        }
        await one.end()
        await two.end()
    }

    @Test func databasesOfAProjectAreApart() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let other = one.database("other")
        try await one.db.document("c/a").setData(["n": 1])
        try await other.document("c/b").setData(["n": 2, "to": other.document("c/x")])
        #expect(QueryEvent(snapshot: try await two.db.collection("c").getDocuments(source: .server)).string == "a=1")
        let there = try await two.database("other").collection("c").getDocuments(source: .server)
        #expect(QueryEvent(snapshot: there).string == "b=2")
        #expect((there.documents[0].get("to") as? DocumentReference)?.firestore === two.database("other"))
        await one.end()
        await two.end()
    }

    @Test func largeDocumentsGoBothWays() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend, isPersistent: true))
        let (received, registration) = two.db.collection("c").record(includeMetadataChanges: false)
        try await received.first(1)
        // Together they are much larger than every window and buffer on the path.
        for n in 0..<8 {
            try await one.db.document("c/\(n)").setData(["n": n, "data": Data(repeating: UInt8(n), count: 1_000_000)])
        }
        let last = try await received.latest { $0.snapshot?.count == 8 }
        for (n, document) in try #require(last.snapshot).documents.enumerated() {
            #expect(document.get("data") as? Data == Data(repeating: UInt8(n), count: 1_000_000))
        }
        await #expect {
            try await one.db.document("c/large").setData(["data": Data(count: 1_100_000)])
        } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
        try await one.db.document("c/0").delete()
        try await received.latest { $0.snapshot?.count == 7 }
        registration.remove()
        await one.end()
        await two.end()
    }

    private struct City: Codable, Equatable {
        @DocumentID var id: String?
        var name: String
        var population: Int
        var at: GeoPoint?
        @ServerTimestamp var changed: Timestamp?
    }

    @Test func codableTypesGoBothWays() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let city = City(name: "Bern", population: 140_000, at: GeoPoint(latitude: 46.9, longitude: 7.4))
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            do {
                try one.db.document("cities/brn").setData(from: city) { error in
                    if let error { continuation.resume(throwing: error) } else { continuation.resume() }
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
        let read = try await two.db.document("cities/brn").getDocument(as: City.self, source: .server)
        #expect(read.id == "brn" && read.name == "Bern" && read.population == 140_000 && read.at == city.at)
        #expect(read.changed != nil)
        await one.end()
        await two.end()
    }
}
