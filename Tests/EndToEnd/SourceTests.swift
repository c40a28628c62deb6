import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// Cache listeners together with listeners and reads that use the server, for one query or for queries that share a
/// target.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct SourceTests {
    private static func cached(_ query: Query) -> (Recorder<QueryEvent>, any ListenerRegistration & Sendable) {
        let recorder = Recorder<QueryEvent>()
        let options = SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(.cache)
        let registration = query.addSnapshotListener(options: options) { snapshot, error in
            recorder.append(QueryEvent(snapshot: snapshot, error: error as NSError?))
        }
        return (recorder, registration)
    }

    @Test func readsAskTheServerBesideAListenerToTheCache() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await other.db.document("c/a").setData(["n": 1])
        let c = device.db.collection("c")
        let (received, registration) = Self.cached(c)
        try await received.first(1)
        for n in 2...5 {
            try await other.db.document("c/a").updateData(["n": n])
            #expect(QueryEvent(snapshot: try await c.getDocuments(source: .server)).string == "a=\(n)")
            try await other.db.document("c/a").updateData(["n": 10 * n])
            #expect(QueryEvent(snapshot: try await c.getDocuments()).string == "a=\(10 * n)")
            try await other.db.document("c/a").updateData(["n": 100 * n])
            let document = try await c.document("a").getDocument(source: .server)
            #expect(document.get("n") as? Int == 100 * n && !document.metadata.isFromCache)
        }
        // It receives the changes that reads stored in the cache, and has the cache's state again after they end.
        try await received.latest { $0.string == "a=500 cache" }
        registration.remove()
        await device.end()
        await other.end()
    }

    @Test func documentsAlike() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        let document = device.db.document("c/a")
        let received = Recorder<String>()
        let options = SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(.cache)
        let registration = document.addSnapshotListener(options: options) { snapshot, _ in
            received.append("\(snapshot?.get("n") ?? "-") \(snapshot?.metadata.isFromCache ?? false)")
        }
        try await received.first(1)
        for n in 1...3 {
            try await other.db.document("c/a").setData(["n": n])
            #expect(try await document.getDocument(source: .server).get("n") as? Int == n)
            #expect(try await document.getDocument().get("n") as? Int == n)
        }
        try await received.latest { $0 == "3 true" }
        registration.remove()
        await device.end()
        await other.end()
    }

    /// The first two in one order are the last two in the reverse order: both share one target.
    private static func twins(_ device: Device) -> (first: Query, last: Query) {
        let c = device.db.collection("c")
        return (c.order(by: "n", descending: true).limit(to: 2), c.order(by: "n").limit(toLast: 2))
    }

    @Test func queriesThatShareATargetReceiveTheirOwnEvents() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        for n in 1...3 { try await other.db.document("c/d\(n)").setData(["n": n]) }
        let (first, last) = Self.twins(device)
        let (received, registration) = first.record()
        let (receivedLast, lastRegistration) = last.record()
        let (cached, cachedRegistration) = Self.cached(first)
        try await received.latest { $0.string == "d3=3 d2=2" }
        try await receivedLast.latest { $0.string == "d2=2 d3=3" }
        // The first query has only a cache listener left; the second continues.
        registration.remove()
        try await other.db.document("c/d4").setData(["n": 4])
        try await receivedLast.latest { $0.string == "d3=3 d4=4" }
        try await cached.latest { $0.string == "d4=4 d3=3" }
        #expect(received.all.last?.string == "d3=3 d2=2")
        // No listener uses the server any more; the first query has the cache's state.
        lastRegistration.remove()
        try await cached.latest { $0.string == "d4=4 d3=3 cache" }
        cachedRegistration.remove()
        await device.end()
        await other.end()
    }

    @Test func aSharedTargetIsListenedToAgain() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await other.db.document("c/d1").setData(["n": 1])
        let (first, last) = Self.twins(device)
        let (received, registration) = first.record()
        let (cached, cachedRegistration) = Self.cached(last)
        try await received.latest { $0.string == "d1=1" }
        try await cached.latest { $0.string == "d1=1" }
        registration.remove()
        cachedRegistration.remove()
        try await other.db.document("c/d2").setData(["n": 2])
        let (again, againRegistration) = last.record()
        try await again.latest { $0.string == "d1=1 d2=2" }
        againRegistration.remove()
        await device.end()
        await other.end()
    }

    /// As in Google's libraries: the server's state of a write is shown after a read from the server.
    @Test(arguments: [false, true]) func aCacheListenerShowsAnAnsweredWriteAsPendingUntilARead(
        isPersistent: Bool
    ) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        let c = device.db.collection("c")
        let (received, registration) = Self.cached(c)
        try await c.document("a").setData(["n": 1])
        #expect(try await received.first(2).map(\.string) == ["cache", "a=1* pending cache"])
        _ = try await c.document("a").getDocument()
        try await received.latest { $0.string == "a=1 cache" }
        try await c.document("a").updateData(["n": FieldValue.increment(Int64(4))])
        try await received.latest { $0.string == "a=5* pending cache" }
        // A listener to the server is the same as a read.
        let (listening, listeningRegistration) = c.record()
        try await listening.latest { $0.string == "a=5" }
        try await received.latest { $0.string == "a=5" }
        try await c.document("a").updateData(["n": 9])
        try await received.latest { $0.string == "a=9" }
        listeningRegistration.remove()
        try await received.latest { $0.string == "a=9 cache" }
        registration.remove()
        await device.end()
    }

    /// The server's folder is restored from a copy: tokens of the lost history are invalid, and older documents are
    /// valid.
    @Test(arguments: [false, true]) func aCacheFollowsAServerThatWasRestored(isPersistent: Bool) async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend, isPersistent: isPersistent), try Device(backend))
        let c = device.db.collection("c")
        try await other.db.document("c/a").setData(["n": 1])
        try await other.db.document("c/gone").setData(["n": 7])
        let (early, earlyRegistration) = c.record()
        try await early.latest { $0.string == "a=1 gone=7" }
        let copy = try await backend.backUp()
        // The change that the restoration loses.
        try await other.db.document("c/a").setData(["n": 2])
        try await other.db.document("c/b").setData(["n": 2])
        try await other.db.document("c/gone").delete()
        try await early.latest { $0.string == "a=2 b=2" }
        earlyRegistration.remove()
        if isPersistent { try await device.restart() } else { try await device.db.disableNetwork() }
        try await backend.restore(copy)
        try await other.db.document("c/d").setData(["n": 4])

        try await device.db.enableNetwork()
        let all = device.db.collection("c")
        let (received, registration) = all.record()
        try await received.latest { $0.string == "a=1 d=4 gone=7" }
        let (filtered, filteredRegistration) = all.whereField("n", isEqualTo: 2).record()
        try await filtered.latest { $0.string == "" }
        #expect(try await device.db.document("c/b").getDocument(source: .server).exists == false)
        registration.remove()
        filteredRegistration.remove()
        await device.end()
        await other.end()
    }
}
