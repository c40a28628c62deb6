import CSQLite
import Foundation
import Glibc
import HearthDatabase
import HearthTestSupport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct DatabaseOfflineTests {
    @Test func writesWaitForTheNetwork() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let seen = two.ref("x").record(.value)
        try await one.ref("x/a").setValue(1)
        try await seen.recorder.latest { $0 == "x: {a: 1}" }
        let own = one.ref("x").record(.value)
        try await own.recorder.latest { $0 == "x: {a: 1}" }
        let connected = one.ref(".info/connected").record(.value)
        try await connected.recorder.latest { $0 == "connected: true" }
        backend.network.cut()
        try await connected.recorder.latest { $0 == "connected: false" }
        let done = Recorder<String>()
        plainly {
            one.ref("x/b").setValue(2) { error, _ in done.append("set \(error == nil)") }
            one.ref("x").updateChildValues(["c": 3, "a": NSNull()]) { error, _ in done.append("update \(error == nil)")
            }
            one.ref("x/n").setValue(ServerValue.increment(5)) { error, _ in done.append("increment \(error == nil)") }
        }
        try await own.recorder.latest { $0 == "x: {b: 2, c: 3, n: 5}" }
        #expect(done.all == [])
        backend.network.restore()
        #expect(try await done.first(3) == ["set true", "update true", "increment true"])
        try await seen.recorder.latest { $0 == "x: {b: 2, c: 3, n: 5}" }
        #expect(own.recorder.all.last == "x: {b: 2, c: 3, n: 5}")
        await one.end()
        await two.end()
    }

    @Test func goingOfflineByHand() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let received = one.ref("x").record(.value)
        try await two.ref("x").setValue(1)
        try await received.recorder.latest { $0 == "x: 1" }
        one.db.goOffline()
        one.db.goOffline()
        try await one.waitUntil(connected: false)
        try await two.ref("x").setValue(2)
        plainly { one.ref("y").setValue(3) }
        #expect(try await one.ref("y").observeSingleEvent(of: .value).string == "3")
        #expect(try await one.ref("x").getData().string == "1", "an observer has the value, although it is stale")
        await #expect(throws: NSError.self) { _ = try await one.ref("z").getData() }
        one.db.goOnline()
        try await received.recorder.latest { $0 == "x: 2" }
        try await Waiting.until("y arrives") { try await two.ref("y").getData().string == "3" }
        await one.end()
        await two.end()
    }

    @Test func theServerStopsAndRestarts() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        let received = device.ref("x").record(.value)
        try await device.ref("x").setValue(1)
        backend.stop()
        try await device.waitUntil(connected: false)
        plainly { device.ref("x").setValue(2) }
        try await backend.restart()
        try await device.waitUntil(connected: true)
        try await Waiting.until("x is 2") { try await device.ref("x").getData().string == "2" }
        #expect(
            !received.recorder.all.dropFirst().contains("x: null"),
            "the value does not flicker: \(received.recorder.all)")
        await device.end()
    }

    @Test func manyChangesWhileAway() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        var children: [String: Any] = [:]
        for index in 0..<300 { children["k\(index)"] = "value \(index)" }
        try await two.ref("x").setValue(children)
        let received = one.ref("x").record(.childAdded, .childRemoved, .childChanged)
        try await received.recorder.first(300)
        backend.network.cut()
        try await one.waitUntil(connected: false)
        backend.network.restore()
        try await two.waitUntil(connected: true)
        try await two.ref("x").updateChildValues(["k7": "new", "k8": NSNull(), "l": 1])
        try await received.recorder.first { $0.hasPrefix("+l: 1") }
        try await received.recorder.first(303)
        #expect(
            Set(
                received.recorder.all.dropFirst(300).map {
                    $0.prefix { $0 != "<" }.trimmingCharacters(in: .whitespaces)
                })
                == ["~k7: new", "-k8: value 8", "+l: 1"])
        await one.end()
        await two.end()
    }

    @Test func theCacheSurvivesTheProgram() async throws {
        let backend = try Backend()
        let folder = TemporaryFolder()
        let name = "device-\(UUID().uuidString)"
        let first = try DatabaseDevice(backend, name: name, folder: folder)
        try await first.ref("x").setValue(["a": 1, "b": 2])
        let received = first.ref("x").record(.value)
        try await received.recorder.latest { $0 == "x: {a: 1, b: 2}" }
        try await first.waitUntil(connected: true)
        backend.network.cut()
        try await first.waitUntil(connected: false)
        plainly {
            first.ref("x/c").setValue(3)
            first.ref("y").setValue(ServerValue.increment(4))
        }
        try await received.recorder.latest { $0 == "x: {a: 1, b: 2, c: 3}" }
        await first.end()

        let second = try DatabaseDevice(backend, name: name, folder: folder)
        let again = second.ref("x").record(.value)
        #expect(try await again.recorder.first(1) == ["x: {a: 1, b: 2, c: 3}"], "without any network")
        #expect(try await second.ref("x/b").getData().string == "2")
        backend.network.restore()
        let other = try DatabaseDevice(backend)
        let seen = other.ref("y").record(.value)
        try await seen.recorder.latest { $0 == "y: 4" }
        try await Waiting.until("x/c") { try await other.ref("x/c").getData().string == "3" }
        await second.end()
        await other.end()
    }

    @Test func keepSynced() async throws {
        let backend = try Backend()
        let folder = TemporaryFolder()
        let (one, two) = (try DatabaseDevice(backend, folder: folder), try DatabaseDevice(backend))
        try await two.ref("x").setValue(1)
        one.ref("x").keepSynced(true)
        try await Waiting.until("the first value") { try await one.ref("x").getData().string == "1" }
        try await two.ref("x").setValue(2)
        try await one.ref("marker").setValue(1)
        one.db.goOffline()
        try await one.waitUntil(connected: false)
        #expect(try await one.ref("x").observeSingleEvent(of: .value).string == "2")
        await one.end()
        await two.end()
    }

    @Test func purging() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        try await device.ref("x").setValue(1)
        let received = device.ref("x").record(.value)
        try await received.recorder.latest { $0 == "x: 1" }
        device.db.goOffline()
        let done = Recorder<Int>()
        plainly { device.ref("x").setValue(2) { error, _ in done.append((error as NSError?)?.code ?? 0) } }
        try await received.recorder.latest { $0 == "x: 2" }
        device.db.purgeOutstandingWrites()
        #expect(try await done.first(1) == [3])
        try await received.recorder.latest { $0 == "x: 1" }
        device.db.goOnline()
        try await device.waitUntil(connected: true)
        #expect(try await device.ref("x").getData().string == "1")
        await device.end()
    }

    /// The server closes a connection on which one request exceeds 16 MiB.
    @Test(arguments: [false, true]) func writesThatAreTooLargeFailAndBlockNothing(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend, folder: isPersistent ? TemporaryFolder() : nil)
        let half = String(repeating: "x", count: 9 << 20)
        let answers = Recorder<String>()
        func note(_ name: String) -> (((any Error)?, DatabaseReference) -> Void) {
            { error, _ in answers.append("\(name) \((error as NSError?)?.localizedFailureReason ?? "made")") }
        }
        plainly {
            device.ref("a").setValue(["x": half, "y": half], withCompletionBlock: note("set"))
            device.ref("b").updateChildValues(["x": half, "y": half], withCompletionBlock: note("update"))
            device.ref("c").setValue(1, withCompletionBlock: note("small"))
            device.ref("d").onDisconnectSetValue(["x": half, "y": half], withCompletionBlock: note("wish"))
        }
        let outcomes = try await answers.first(4)
        #expect(Set(outcomes.map { $0.prefix { $0 != " " } }) == ["set", "update", "small", "wish"])
        #expect(
            outcomes.filter { $0.contains("larger than") }.count == 3 && outcomes.contains("small made"), "\(outcomes)")
        #expect(try await device.ref("a").getData().exists() == false)
        await device.end()
    }

    /// The answer to a single read has no position in the order of an observer's events.
    @Test(arguments: [50, 2000]) func aReadAboveAnObserverRevertsNothing(siblings count: Int) async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await two.ref("p/x").setValue(-1)
        let siblings = Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", "some string \($0)") })
        try await two.ref("p/siblings").setValue(siblings)
        let received = one.ref("p/x").record(.value)
        try await received.recorder.first(1)
        let isOver = Recorder<Bool>()
        let writer = Task {
            for n in 0..<60 { try await two.ref("p/x").setValue(n) }
            isOver.append(true)
        }
        while isOver.all.isEmpty { _ = try await one.ref("p").getData() }
        try await writer.value
        try await received.recorder.latest { $0 == "x: 59" }
        let numbers = received.recorder.all.compactMap { Int($0.dropFirst(3)) }
        #expect(numbers == numbers.sorted())
        received.stop()
        await one.end()
        await two.end()
    }

    /// The disk is full while a write is answered: the next run does not send the write again.
    @Test func anAnswerThatTheDiskRejectsIsNotLost() async throws {
        let backend = try Backend()
        let folder = TemporaryFolder()
        let device = try DatabaseDevice(backend, name: "full", folder: folder)
        let other = try DatabaseDevice(backend)
        try await device.ref("n").setValue(0)
        backend.network.freeze()
        let done = Recorder<Bool>()
        plainly {
            device.ref("x").setValue(1) { error, _ in done.append(error == nil) }
            device.ref("n").setValue(ServerValue.increment(1)) { error, _ in done.append(error == nil) }
        }
        #expect(try await device.ref("x").observeSingleEvent(of: .value).string == "1")
        DiskFaults.plant(DiskFaults.Plan(folder: folder.path, code: ENOSPC) { _ in true })
        backend.network.thaw()
        #expect(try await done.first(2) == [true, true])
        DiskFaults.remove(from: folder.path)
        try await other.ref("x").setValue(3)
        try await device.ref("y").setValue(2)
        await device.end()
        let again = try DatabaseDevice(backend, name: "full", folder: folder)
        try await again.ref("marker").setValue(1)
        #expect(try await other.ref().getData().string == "{marker: 1, n: 1, x: 3, y: 2}")
        await again.end()
        await other.end()
    }

    /// A row of the queue that cannot be read loses only its own write.
    @Test func aWriteThatCannotBeReadLosesOnlyItself() async throws {
        let backend = try Backend()
        let folder = TemporaryFolder()
        let device = try DatabaseDevice(backend, name: "damaged", folder: folder)
        device.db.goOffline()
        plainly { for name in ["a", "b", "c"] { device.ref(name).setValue(1) } }
        #expect(try await device.ref("c").observeSingleEvent(of: .value).string == "1")
        await device.end()
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".sqlite") }
        var file: OpaquePointer?
        #expect(sqlite3_open("\(folder.path)/\(try #require(files.first))", &file) == SQLITE_OK)
        #expect(sqlite3_exec(file, "UPDATE writes SET data = x'7b22' WHERE path = x'62'", nil, nil, nil) == SQLITE_OK)
        #expect(sqlite3_changes(file) == 1)
        sqlite3_close(file)
        let again = try DatabaseDevice(backend, name: "damaged", folder: folder)
        for n in 1...3 { try await again.ref("later/\(n)").setValue(n) }
        let other = try DatabaseDevice(backend)
        #expect(try await other.ref().getData().string == "{a: 1, c: 1, later: [null, 1, 2, 3]}")
        await again.end()
        await other.end()
    }

    @Test func wholeNumbersAreReportedOnce() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        let received = device.ref("x").record(.value)
        try await received.recorder.latest { $0 == "x: null" }
        for value in [5.0, 2.5, -0.0, 1e15] { try await device.ref("x").setValue(value) }
        try await device.ref("x").setValue(ServerValue.increment(0.5))
        try await device.ref("x").setValue(ServerValue.increment(0.5))
        try await device.ref("x").setValue(["a": 1.0, "b": [2.0, 3]] as [String: Any])
        try await received.recorder.latest { $0.contains("b") }
        #expect(received.recorder.all.count == 8, "\(received.recorder.all)")
        received.stop()
        await device.end()
    }
}
