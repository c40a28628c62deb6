import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// Programs that lose the network and reconnect.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct OfflineTests {
    @Test func writesWaitAndListenersReadTheCache() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        let c = device.db.collection("c")
        try await c.document("a").setData(["n": 1])
        let (received, registration) = c.record()
        try await received.latest { $0.string == "a=1" }
        try await device.db.disableNetwork()
        try await received.latest { $0.string == "a=1 cache" }

        let answers = Recorder<String>()
        c.document("b").setData(["n": 2]) { answers.append("b \($0 == nil)") }
        c.document("a").updateData(["n": FieldValue.increment(Int64(5))]) { answers.append("a \($0 == nil)") }
        try await received.latest { $0.string == "a=6* b=2* pending cache" }
        #expect(QueryEvent(snapshot: try await c.order(by: "n").getDocuments()).string == "b=2* a=6* pending cache")
        await #expect { try await c.getDocuments(source: .server) } throws: { FirestoreErrorCode.unavailable ~= $0 }
        await #expect { try await c.document("z").getDocument() } throws: { FirestoreErrorCode.unavailable ~= $0 }
        // Listeners that are added offline start with the cache.
        let (late, lateRegistration) = c.whereField("n", isGreaterThan: 3).record()
        #expect(try await late.first(1).map(\.string) == ["a=6* pending cache"])
        #expect(QueryEvent(snapshot: try await other.db.collection("c").getDocuments(source: .server)).string == "a=1")
        #expect(answers.all.isEmpty)

        // The other devices' changes and this device's changes are merged.
        try await other.db.document("c/a").updateData(["n": FieldValue.increment(Int64(10))])
        try await device.db.enableNetwork()
        try await device.db.waitForPendingWrites()
        #expect(try await answers.first(2) == ["b true", "a true"])
        try await received.latest { $0.string == "a=16 b=2" }
        try await late.latest { $0.string == "a=16" }
        #expect(
            QueryEvent(snapshot: try await other.db.collection("c").getDocuments(source: .server)).string == "a=16 b=2")
        registration.remove()
        lateRegistration.remove()
        await device.end()
        await other.end()
    }

    @Test func waitingForPendingWritesEndsWithTheLastAnswer() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        // Nothing is pending: no network is needed.
        try await device.db.disableNetwork()
        try await device.db.waitForPendingWrites()
        let order = Recorder<String>()
        for n in 0..<30 { device.db.document("c/d").setData(["n": n]) { _ in order.append("\(n)") } }
        device.db.waitForPendingWrites { _ in order.append("waited") }
        try await device.db.enableNetwork()
        try await order.first(31)
        let expected: [String] = (0..<30).map { "\($0)" } + ["waited"]
        #expect(order.all == expected)
        await device.end()
    }

    @Test func theCacheOutlivesTheProgram() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend, isPersistent: true), try Device(backend))
        for (id, n) in [("a", 1), ("b", 2), ("gone", 3)] { try await other.db.document("c/\(id)").setData(["n": n]) }
        _ = try await device.db.collection("c").getDocuments()
        try await device.db.disableNetwork()
        let c = device.db.collection("c")
        c.document("a").updateData(
            ["n": FieldValue.increment(Int64(1)), "at": FieldValue.serverTimestamp()], completion: nil)
        c.document("new").setData(["n": 9], completion: nil)
        c.document("gone").delete(completion: nil)
        // A write's effect is in the cache before a later read is answered.
        #expect(try await device.db.collection("c").getDocuments(source: .cache).count == 3)

        backend.network.cut()
        try await device.restart()
        let cached = try await device.db.collection("c").getDocuments(source: .cache)
        #expect(QueryEvent(snapshot: cached).string == "a=2* b=2 new=9* pending cache")
        #expect(cached.documents[0].get("at") is NSNull)
        #expect(cached.documents[0].get("at", serverTimestampBehavior: .estimate) is Timestamp)
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "a=2* b=2 new=9* pending cache" }
        #expect(Set(received.all.map(\.string)) == ["a=2* b=2 new=9* pending cache"], "\(received.all)")

        backend.network.restore()
        try await device.db.disableNetwork()
        try await device.db.enableNetwork()
        try await device.db.waitForPendingWrites()
        try await received.latest { $0.string == "a=2 b=2 new=9" }
        let there = try await other.db.collection("c").getDocuments(source: .server)
        #expect(QueryEvent(snapshot: there).string == "a=2 b=2 new=9")
        #expect(there.documents[0].get("at") is Timestamp)
        registration.remove()

        // A third run sends nothing twice.
        try await device.restart()
        try await device.db.waitForPendingWrites()
        #expect(
            QueryEvent(snapshot: try await device.db.collection("c").getDocuments(source: .cache)).string
                == "a=2 b=2 new=9 cache")
        #expect(
            QueryEvent(snapshot: try await other.db.collection("c").getDocuments(source: .server)).string
                == "a=2 b=2 new=9")
        await device.end()
        await other.end()
    }

    @Test func aProgramThatBeginsOfflineWorks() async throws {
        let backend = try Backend()
        backend.network.cut()
        let device = try Device(backend)
        let (received, registration) = device.db.collection("c").record()
        // When the server is known to be unreachable.
        #expect(try await received.first(1).map(\.string) == ["cache"])
        await #expect { try await device.db.document("c/a").getDocument() } throws: {
            FirestoreErrorCode.unavailable ~= $0
        }
        let answers = Recorder<Bool>()
        device.db.document("c/a").setData(["n": 1]) { answers.append($0 == nil) }
        try await received.latest { $0.string == "a=1* pending cache" }
        #expect(try await device.db.document("c/a").getDocument().get("n") as? Int == 1)
        // Without a notification it reconnects automatically.
        backend.network.restore()
        try await received.latest { $0.string == "a=1" }
        #expect(try await answers.first(1) == [true])
        registration.remove()
        await device.end()
    }

    @Test func aCacheListenerSendsNoRequest() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await other.db.document("c/a").setData(["n": 1])
        let received = Recorder<QueryEvent>()
        let options = SnapshotListenOptions().withSource(.cache).withIncludeMetadataChanges(true)
        let registration = device.db.collection("c").addSnapshotListener(options: options) { snapshot, error in
            received.append(QueryEvent(snapshot: snapshot, error: error as NSError?))
        }
        #expect(try await received.first(1).map(\.string) == ["cache"])
        try await device.db.document("c/b").setData(["n": 2])
        // As in Google's libraries, which wait for the server's update of the document: it is not requested.
        try await received.latest { $0.string == "b=2* pending cache" }
        // Documents that another read stores in the cache are shown.
        _ = try await device.db.document("c/a").getDocument()
        try await received.latest { $0.string == "a=1 b=2* pending cache" }
        _ = try await device.db.document("c/b").getDocument()
        try await received.latest { $0.string == "a=1 b=2 cache" }
        registration.remove()
        await device.end()
        await other.end()
    }
}
