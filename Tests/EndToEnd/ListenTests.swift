import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// The events that listeners receive.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ListenTests {
    @Test func changesOfOthersComeByThemselves() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        try await one.db.document("c/a").setData(["n": 1])
        try await one.db.document("c/x").setData(["n": 50])
        let query = two.db.collection("c").whereField("n", isLessThan: 10).order(by: "n")
        let (received, registration) = query.record()
        try await received.first(1)
        try await received.latest { $0.string == "a=1" }
        try await one.db.document("c/b").setData(["n": 0])
        #expect(try await received.latest { $0.string == "b=0 a=1" }.changes == "+b")
        try await one.db.document("c/b").updateData(["n": 2])
        #expect(try await received.latest { $0.string == "a=1 b=2" }.changes == "~b")
        // A document is added to the result, leaves it, and is deleted.
        try await one.db.document("c/x").updateData(["n": 3])
        #expect(try await received.latest { $0.string == "a=1 b=2 x=3" }.changes == "+x")
        try await one.db.document("c/a").updateData(["n": 11])
        #expect(try await received.latest { $0.string == "b=2 x=3" }.changes == "-a")
        try await one.db.document("c/b").delete()
        #expect(try await received.latest { $0.string == "x=3" }.changes == "-b")

        registration.remove()
        let count = received.all.count
        let (other, otherRegistration) = query.record()
        try await one.db.document("c/x").delete()
        try await other.latest { $0.string.isEmpty }
        #expect(received.all.count == count, "a removed listener receives no event")
        otherRegistration.remove()
        await one.end()
        await two.end()
    }

    /// The order that programs rely on: the cache, the server, the local write, its confirmation.
    @Test func ownWritesShowBeforeTheServerHasThem() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        try await device.db.document("c/a").setData(["n": 1])
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "a=1" }
        let known = received.all.count
        try await device.db.document("c/b").setData(["n": 2])
        let events = try await received.first(known + 2).dropFirst(known)
        #expect(events.map(\.string) == ["a=1 b=2* pending", "a=1 b=2"])
        #expect(events.first?.changes == "+b")
        // The confirmation changes only the metadata.
        #expect(events.last?.changes == "")
        let withMetadata = try #require(events.last?.snapshot).documentChanges(includeMetadataChanges: true)
        #expect(withMetadata.map(\.type) == [.modified])
        registration.remove()
        await device.end()
    }

    @Test func withoutMetadataChangesOnlyContentsCount() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        let (received, registration) = device.db.collection("c").record(includeMetadataChanges: false)
        try await received.first(1)
        try await device.db.document("c/a").setData(["n": 1])
        try await other.db.document("c/b").setData(["n": 2])
        try await received.latest { $0.string == "a=1 b=2" }
        #expect(received.all.map(\.string) == ["", "a=1* pending", "a=1 b=2"])
        registration.remove()
        await device.end()
        await other.end()
    }

    @Test func emptyResultsAreReportedAfterTheServersAnswer() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        let (received, registration) = device.db.collection("nothing").record()
        let first = try #require(try await received.first(1).first)
        #expect(first.string == "")
        let document = Recorder<String>()
        let other = device.db.document("nothing/here").addSnapshotListener(includeMetadataChanges: true) {
            snapshot, _ in document.append("\(snapshot?.exists ?? true) \(snapshot?.metadata.isFromCache ?? true)")
        }
        #expect(try await document.first(1) == ["false false"])
        registration.remove()
        other.remove()
        await device.end()
    }

    @Test func serverTimestampsAreGuessedAndThenKnown() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        let document = device.db.document("c/a")
        try await document.setData(["at": 1])
        let received = Recorder<DocumentSnapshot>()
        let registration = document.addSnapshotListener(includeMetadataChanges: true) { snapshot, _ in
            if let snapshot { received.append(snapshot) }
        }
        try await received.latest { !$0.metadata.isFromCache && !$0.metadata.hasPendingWrites }
        let known = received.all.count
        let before = Date()
        try await document.updateData(["at": FieldValue.serverTimestamp()])
        let events = try await received.first(known + 2).dropFirst(known)
        let guess = try #require(events.first)
        let certain = try #require(events.last)
        #expect(guess.metadata.hasPendingWrites)
        #expect(guess.get("at") is NSNull)
        #expect(guess.get("at", serverTimestampBehavior: .previous) as? Int == 1)
        let estimate = try #require(guess.get("at", serverTimestampBehavior: .estimate) as? Timestamp)
        #expect(abs(estimate.dateValue().timeIntervalSince(before)) < 30)
        #expect(!certain.metadata.hasPendingWrites)
        let time = try #require(certain.get("at") as? Timestamp)
        #expect(try await other.db.document("c/a").getDocument().get("at") as? Timestamp == time)
        #expect(abs(time.dateValue().timeIntervalSince(before)) < 30)
        registration.remove()
        await device.end()
        await other.end()
    }

    /// A pending server timestamp sorts after all known timestamps.
    @Test func pendingTimestampsSortLast() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        let c = device.db.collection("c")
        for id in ["x", "y"] { try await c.document(id).setData(["at": FieldValue.serverTimestamp(), "n": 1]) }
        let (received, registration) = c.order(by: "at").record()
        try await received.latest { $0.string == "x=1 y=1" }
        let known = received.all.count
        try await c.document("x").updateData(["at": FieldValue.serverTimestamp(), "n": 2])
        let events = try await received.first(known + 2).dropFirst(known)
        #expect(events.map(\.string) == ["y=1 x=2* pending", "y=1 x=2"])
        registration.remove()
        await device.end()
    }

    @Test func limitsRefillFromTheServer() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        for n in 1...5 { try await one.db.document("c/\(n)").setData(["n": n]) }
        let (received, registration) = two.db.collection("c").order(by: "n").limit(to: 2).record()
        try await received.latest { $0.string == "1=1 2=2" }
        try await one.db.document("c/1").delete()
        #expect(try await received.latest { $0.string == "2=2 3=3" }.changes == "-1 +3")
        // The same for this device's own write: the cache does not know the next document.
        try await two.db.document("c/2").updateData(["n": 9])
        try await received.latest { $0.string == "3=3 4=4" }
        try await one.db.document("c/0").setData(["n": 0])
        #expect(try await received.latest { $0.string == "0=0 3=3" }.changes == "-4 +0")
        registration.remove()
        await one.end()
        await two.end()
    }

    @Test func snapshotsComeAsASequence() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let sequence = two.db.collection("c").snapshots
        let seen = Task {
            var strings: [String] = []
            for try await snapshot in sequence {
                strings.append(QueryEvent(snapshot: snapshot).string)
                if snapshot.count == 2 { break }
                try await one.db.document("c/\(snapshot.count)").setData(["n": snapshot.count])
            }
            return strings
        }
        #expect(try await seen.value == ["", "0=0", "0=0 1=1"])
        await one.end()
        await two.end()
    }

    /// Two listeners with overlapping results receive one change before anything else happens.
    @Test func listenersStayInSync() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        let all = two.db.collection("c")
        let (whole, first) = all.record(includeMetadataChanges: false)
        let (part, second) = all.whereField("n", isGreaterThan: 5).record(includeMetadataChanges: false)
        try await whole.first(1)
        try await part.first(1)
        let marks = Recorder<String>()
        let third = two.db.addSnapshotsInSyncListener {
            marks.append("\(whole.all.last?.string ?? "")|\(part.all.last?.string ?? "")")
        }
        try await marks.first(1)
        try await one.db.document("c/a").setData(["n": 7])
        try await one.db.document("c/a").setData(["n": 1])
        try await marks.latest { $0 == "a=1|" }
        #expect(Set(marks.all).isSubset(of: ["|", "a=7|a=7", "a=1|"]), "\(marks.all)")
        for registration in [first, second, third] { registration.remove() }
        await one.end()
        await two.end()
    }
}
