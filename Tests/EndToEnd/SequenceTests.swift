import Foundation
import HearthDatabase
import HearthFirestore
import HearthTestSupport
import Testing

/// The asynchronous sequences of both clients with a server.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct SequenceTests {
    // MARK: The Realtime Database

    @Test func snapshotsFollowTheData() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("list").setValue(["a": 1, "b": 2])
        var iterator = two.ref("list").queryLimited(toLast: 1).snapshots.makeAsyncIterator()
        #expect(try await iterator.next()?.string == "{b: 2}")
        try await one.ref("list/c").setValue(3)
        // The window moves in one or more steps.
        var newest = ""
        while newest != "{c: 3}" { newest = try #require(try await iterator.next()).string }
        await one.end()
        await two.end()
        #expect(try await iterator.next() == nil)
    }

    @Test func childEventsOfOthers() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("list").setValue(["a": 1, "b": 2])
        let received = Recorder<String>()
        let task = Task {
            for try await event in two.ref("list").childEvents() {
                let previous = event.previousSiblingKey.map { " <\($0)" } ?? ""
                received.append("\(event.type) \(event.snapshot.key): \(event.snapshot.string)\(previous)")
            }
        }
        #expect(try await received.first(2) == ["childAdded a: 1", "childAdded b: 2 <a"])
        try await one.ref("list/c").setValue(3)
        try await one.ref("list/a").setValue(10)
        try await one.ref("list/b").removeValue()
        try await one.ref("list/c").setPriority(-1)
        try await received.first { $0 == "childMoved c: 3" || $0.hasPrefix("childMoved") }
        let expected = ["childAdded c: 3 <b", "childChanged a: 10", "childRemoved b: 2"]
        #expect(Array(received.all.dropFirst(2).prefix(3)) == expected)
        task.cancel()
        try await task.value
        let count = received.all.count
        try await one.ref("list/d").setValue(4)
        #expect(try await two.ref("list/d").getData().string == "4")
        #expect(received.all.count == count)
        await one.end()
        await two.end()
    }

    @Test func whatTheRulesRejectThrows() async throws {
        let backend = try Backend(databaseRules: #"{"rules": {"open": {".read": true, ".write": true}}}"#)
        let device = try DatabaseDevice(backend)
        try await device.ref("open").setValue(1)
        for try await snapshot in device.ref("open").snapshots {
            #expect(snapshot.string == "1")
            break
        }
        func isRejection(_ error: any Error) -> Bool {
            (error as NSError).domain == "com.firebase" && (error as NSError).code == 1
        }
        await #expect {
            for try await _ in device.ref("locked").snapshots { Issue.record("a snapshot") }
        } throws: {
            isRejection($0)
        }
        await #expect {
            for try await _ in device.ref("locked").childEvents() { Issue.record("an event") }
        } throws: {
            isRejection($0)
        }
        await device.end()
    }

    /// Data that the program wrote locally is delivered before the server rejects the listen.
    @Test func whatArrivedBeforeAnErrorIsDelivered() async throws {
        let backend = try Backend(databaseRules: #"{"rules": {".read": false, ".write": true}}"#)
        let device = try DatabaseDevice(backend)
        device.db.goOffline()
        try await device.waitUntil(connected: false)
        plainly { device.ref("x").setValue(["a": 1, "b": 2]) }
        var events = device.ref("x").childEvents().makeAsyncIterator()
        var snapshots = device.ref("x").snapshots.makeAsyncIterator()
        // An observer that is rejected after the iterators.
        let ended = device.ref("x").record(.value)
        device.db.goOnline()
        try await ended.recorder.first { $0 == "error 1" }
        #expect(try await events.next()?.snapshot.key == "a")
        #expect(try await events.next()?.snapshot.key == "b")
        await #expect(throws: NSError.self) { while try await events.next() != nil {} }
        #expect(try await snapshots.next() != nil)
        await #expect(throws: NSError.self) { while try await snapshots.next() != nil {} }
        await device.end()
    }

    @Test func anEncodedValueIsWritten() async throws {
        struct Line: Codable, Equatable {
            var message: String
            var likes: Int?
        }
        let backend = try Backend(databaseRules: #"{"rules": {"open": {".read": true, ".write": true}}}"#)
        let device = try DatabaseDevice(backend)
        let line = Line(message: "hi", likes: 2)
        #expect(try await device.ref("open/line").setValue(encoding: line).key == "line")
        #expect(try await device.ref("open/line").getData().data(as: Line.self) == line)
        await #expect(throws: NSError.self) { try await device.ref("locked").setValue(encoding: line) }
        await #expect(throws: EncodingError.self) {
            try await device.ref("open/line").setValue(encoding: ["x": Double.infinity])
        }
        try await device.ref("open/line").setValue(encoding: Line?.none)
        #expect(try await device.ref("open/line").getData().exists() == false)
        await device.end()
    }

    @Test(arguments: [false, true]) func pendingWritesOfADatabase(isPersistent: Bool) async throws {
        let backend = try Backend()
        let folder = isPersistent ? TemporaryFolder() : nil
        let name = "device-\(UUID().uuidString)"
        var device = try DatabaseDevice(backend, name: name, folder: folder)
        var iterator = device.db.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        try await device.ref("a").setValue(1)
        while let count = try await iterator.next(), count > 0 {}
        device.db.goOffline()
        try await device.waitUntil(connected: false)
        plainly { device.ref("b").setValue(2) }
        #expect(try await iterator.next() == 1)
        plainly { device.ref().updateChildValues(["c": 3, "d": 4]) }
        #expect(try await iterator.next() == 2)
        if isPersistent {
            // The next run of the program.
            await device.end()
            #expect(try await iterator.next() == nil, "the end of a run saves nothing")
            backend.network.cut()
            device = try DatabaseDevice(backend, name: name, folder: folder)
            iterator = device.db.pendingWriteCounts.makeAsyncIterator()
            #expect(try await iterator.next() == 2)
            backend.network.restore()
        } else {
            device.db.goOnline()
        }
        while let count = try await iterator.next(), count > 0 {}
        #expect(try await device.ref("d").getData().string == "4")
        await device.end()
    }

    // MARK: Firestore

    @Test(arguments: [false, true]) func pendingWritesOfFirestore(isPersistent: Bool) async throws {
        let backend = try Backend(
            rules: """
                service cloud.firestore {
                    match /databases/{d}/documents { match /c/{id} { allow read, write: if id != "locked"; } }
                }
                """)
        let device = try Device(backend, isPersistent: isPersistent)
        var iterator = device.db.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        try await device.db.document("c/a").setData(["n": 1])
        while let count = try await iterator.next(), count > 0 {}
        try await device.db.disableNetwork()
        for id in ["a", "locked", "b"] { device.db.document("c/\(id)").setData(["n": 2], completion: nil) }
        while let count = try await iterator.next(), count < 3 {}
        if isPersistent {
            try await device.db.terminate()
            #expect(try await iterator.next() == nil, "the end of a run saves nothing")
            backend.network.cut()
            device.start()
            iterator = device.db.pendingWriteCounts.makeAsyncIterator()
            #expect(try await iterator.next() == 3)
            backend.network.restore()
        } else {
            try await device.db.enableNetwork()
        }
        // A rejected write is not pending either.
        while let count = try await iterator.next(), count > 0 {}
        #expect(try await device.db.document("c/b").getDocument(source: .server).get("n") as? Int == 2)
        await device.end()
        #expect(try await iterator.next() == nil)
    }

    @Test func encodedDocumentsAreWritten() async throws {
        struct City: Codable, Equatable {
            var name: String
            var people: Int?
        }
        let backend = try Backend(
            rules: """
                service cloud.firestore {
                    match /databases/{d}/documents { match /c/{id} { allow read, write: if true; } }
                }
                """)
        let device = try Device(backend)
        let bern = device.db.document("c/bern")
        func read() async throws -> City { try await bern.getDocument(as: City.self, source: .server) }
        try await bern.setData(encoding: City(name: "Bern", people: 140_000))
        #expect(try await read() == City(name: "Bern", people: 140_000))
        try await bern.setData(encoding: City(name: "Berne"), merge: true)
        #expect(try await read() == City(name: "Berne", people: 140_000))
        try await bern.setData(encoding: City(name: "Berna", people: 1), mergeFields: ["name"])
        #expect(try await read() == City(name: "Berna", people: 140_000))
        try await bern.setData(encoding: City(name: "Bärn"), merge: false)
        #expect(try await read() == City(name: "Bärn"))
        let thun = try await device.db.collection("c").addDocument(encoding: City(name: "Thun"))
        #expect(try await thun.getDocument(as: City.self, source: .server) == City(name: "Thun"))
        await #expect(throws: EncodingError.self) { try await bern.setData(encoding: "no object") }
        await #expect {
            try await device.db.document("locked/x").setData(encoding: City(name: "x"))
        } throws: {
            FirestoreErrorCode.permissionDenied ~= $0
        }
        await device.end()
    }
}
