import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// Servers that stop and connections that break while programs run.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct OutageTests {
    @Test func theServerStopsAndRestarts() async throws {
        let backend = try Backend()
        let devices = [try Device(backend), try Device(backend, isPersistent: true)]
        try await devices[0].db.document("c/a").setData(["n": 1])
        var listeners: [(received: Recorder<QueryEvent>, registration: any ListenerRegistration & Sendable)] = []
        for device in devices {
            let (received, registration) = device.db.collection("c").record()
            listeners.append((received, registration))
            try await received.latest { $0.string == "a=1" }
        }
        backend.stop()
        for listener in listeners { try await listener.received.latest { $0.string == "a=1 cache" } }
        let answers = Recorder<Bool>()
        devices[0].db.document("c/b").setData(["n": 2]) { answers.append($0 == nil) }
        devices[1].db.document("c/a").updateData(["n": FieldValue.increment(Int64(10))]) { answers.append($0 == nil) }
        try await listeners[0].received.latest { $0.string == "a=1 b=2* pending cache" }
        try await listeners[1].received.latest { $0.string == "a=11* pending cache" }
        #expect(answers.all.isEmpty)

        try await backend.restart()
        #expect(try await answers.first(2) == [true, true])
        for listener in listeners {
            try await listener.received.latest { $0.string == "a=11 b=2" }
            // Existing documents are not removed and added again.
            #expect(!listener.received.all.contains { $0.changes.contains("-") }, "\(listener.received.all)")
            listener.registration.remove()
        }
        for device in devices { await device.end() }
    }

    @Test func listensGoOnOverBrokenConnections() async throws {
        let backend = try Backend()
        let (writer, reader) = (try Device(backend), try Device(backend))
        let (received, registration) = reader.db.collection("c").order(by: "n").record(includeMetadataChanges: false)
        try await received.first(1)
        for n in 0..<40 {
            if n % 8 == 5 { backend.network.breakConnections() }
            try await writer.db.document("c/\(n)").setData(["n": n])
        }
        try await received.latest { $0.snapshot?.count == 40 }
        // Each snapshot is a state of the server: a sequence without gaps, which only grows.
        var count = 0
        for event in received.all {
            let numbers = try #require(event.snapshot).documents.map { $0.get("n") as? Int }
            #expect(numbers == Array(0..<numbers.count))
            #expect(numbers.count >= count)
            count = numbers.count
        }
        #expect(backend.network.connectionsAccepted > 4)
        registration.remove()
        await writer.end()
        await reader.end()
    }

    @Test func deletionsDuringAnOutageAreNoticed() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        for n in 0..<6 { try await other.db.document("c/\(n)").setData(["n": n]) }
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "0=0 1=1 2=2 3=3 4=4 5=5" }
        try await device.db.disableNetwork()
        for n in [0, 3, 5] { try await other.db.document("c/\(n)").delete() }
        try await other.db.document("c/1").updateData(["n": 11])
        // The server also loses its state of the device's listen.
        backend.stop()
        try await backend.restart()
        try await device.db.enableNetwork()
        try await received.latest { $0.string == "1=11 2=2 4=4" }
        let cached = try await device.db.collection("c").getDocuments(source: .cache)
        #expect(QueryEvent(snapshot: cached).string == "1=11 2=2 4=4 cache")
        registration.remove()
        await device.end()
        await other.end()
    }

    @Test func writesArriveInOrderOverBrokenConnections() async throws {
        let backend = try Backend()
        let (writer, reader) = (try Device(backend), try Device(backend))
        let answers = Recorder<Int>()
        for n in 0..<60 {
            writer.db.document("c/d\(n % 4)").setData(["n": n]) { error in
                if error == nil { answers.append(n) }
            }
            if n % 20 == 10 {
                try await answers.first(n / 2)
                backend.network.breakConnections()
            }
        }
        try await writer.db.waitForPendingWrites()
        #expect(try await answers.first(60) == Array(0..<60))
        let snapshot = try await reader.db.collection("c").getDocuments(source: .server)
        #expect(QueryEvent(snapshot: snapshot).string == "d0=56 d1=57 d2=58 d3=59")
        await writer.end()
        await reader.end()
    }

    /// No connection is refused and no data arrives: only a timeout detects it.
    @Test func aSilentNetworkCountsAsOffline() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend, isPersistent: true), try Device(backend))
        try await other.db.document("c/a").setData(["n": 1])
        _ = try await device.db.collection("c").getDocuments()
        try await device.restart()
        backend.network.freeze()
        let (received, registration) = device.db.collection("c").record()
        #expect(try await received.first(1).map(\.string) == ["a=1 cache"])
        // Waits for the server, up to a limit.
        let snapshot = try await device.db.collection("c").whereField("n", isLessThan: 5).getDocuments()
        #expect(QueryEvent(snapshot: snapshot).string == "a=1 cache")
        await #expect { try await device.db.document("c/b").getDocument() } throws: {
            FirestoreErrorCode.unavailable ~= $0
        }
        backend.network.thaw()
        try await received.latest { $0.string == "a=1" }
        #expect(try await device.db.document("c/b").getDocument().exists == false)
        registration.remove()
        await device.end()
        await other.end()
    }

    /// Only in long runs: it takes the interval of the connection probes, and the timeout of their answers.
    @Test(.enabled(if: TestRun.effort > 1, "takes the interval of the connection probes: set HEARTH_TEST_EFFORT"))
    func silentConnectionsAreGivenUp() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "" }
        backend.network.freeze()
        try await received.latest { $0.string == "cache" }
        backend.network.thaw()
        try await other.db.document("c/a").setData(["n": 1])
        try await received.latest { $0.string == "a=1" }
        registration.remove()
        await device.end()
        await other.end()
    }
}
