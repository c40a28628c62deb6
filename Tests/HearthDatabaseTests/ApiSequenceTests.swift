import Foundation
import HearthApp
import HearthTestSupport
import Testing

@testable import HearthDatabase

/// The asynchronous sequences over the engine, without a server: data is what the program writes.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct ApiSequenceTests {
    private let bench: ApiBench
    private let root: DatabaseReference

    init() throws {
        bench = try ApiBench()
        root = bench.database.reference()
    }

    private var observers: Int { bench.database.repository.observerCount }

    private static func string(_ event: DatabaseEvent) -> String {
        let sign =
            switch event {
            case .childAdded: "+"
            case .childChanged: "~"
            case .childRemoved: "-"
            case .childMoved: ">"
            }
        let previous = event.previousSiblingKey.map { " <\($0)" } ?? ""
        return "\(sign)\(event.snapshot.key) \(event.snapshot.value as? Int ?? 0)\(previous)"
    }

    @Test func snapshotsAreTheNewestData() async throws {
        let ref = root.child("list")
        plainly { ref.setValue(["a": 1]) }
        var iterator = ref.snapshots.makeAsyncIterator()
        #expect(try await iterator.next()?.childrenCount == 1)
        for n in 2...50 { plainly { ref.child("c\(n)").setValue(n) } }
        await bench.settle()
        #expect(try await iterator.next()?.childrenCount == 50, "the data in between is not delivered")
        plainly { ref.removeValue() }
        let last = try #require(try await iterator.next())
        #expect(!last.exists() && last.key == "list")
    }

    @Test func eachIteratorObserves() async throws {
        plainly { root.child("x").setValue(1) }
        let snapshots = root.child("x").snapshots
        #expect(observers == 0, "a sequence alone observes nothing")
        var one = snapshots.makeAsyncIterator()
        var two = snapshots.makeAsyncIterator()
        #expect(observers == 2)
        #expect(try await one.next()?.value as? Int == 1)
        #expect(try await two.next()?.value as? Int == 1)
        plainly { root.child("x").setValue(2) }
        #expect(try await one.next()?.value as? Int == 2)
        #expect(try await two.next()?.value as? Int == 2)
    }

    @Test func removingAllObserversEndsSequences() async throws {
        plainly { root.child("x").setValue(1) }
        var snapshots = root.child("x").snapshots.makeAsyncIterator()
        var events = root.child("x").childEvents().makeAsyncIterator()
        #expect(try await snapshots.next()?.value as? Int == 1)
        root.child("x").removeAllObservers()
        #expect(try await snapshots.next() == nil)
        #expect(try await events.next() == nil)
        #expect(observers == 0)
    }

    @Test func childEventsAreThoseOfObservers() async throws {
        let ref = root.child("list")
        plainly { ref.setValue(["a": 1, "b": 2, "c": 3]) }
        var iterator = ref.queryOrderedByValue().childEvents().makeAsyncIterator()
        var received: [String] = []
        func receive(_ count: Int) async throws -> [String] {
            received = []
            for _ in 0..<count { received.append(Self.string(try #require(try await iterator.next()))) }
            return received
        }
        #expect(try await receive(3) == ["+a 1", "+b 2 <a", "+c 3 <b"])
        plainly { ref.updateChildValues(["a": 9, "b": NSNull()]) }
        #expect(try await receive(3) == ["-b 2", ">a 9 <c", "~a 9 <c"])
        plainly { ref.child("d").setValue(5) }
        let event = try #require(try await iterator.next())
        #expect(
            event.type == .childAdded && event.previousSiblingKey == "c" && event.snapshot.ref.url.hasSuffix("list/d"))
    }

    @Test func successiveChangesOfAChildBecomeOne() async throws {
        let ref = root.child("list")
        plainly { ref.setValue(["a": 0, "b": 0]) }
        var iterator = ref.childEvents().makeAsyncIterator()
        for n in 1...100 { plainly { ref.updateChildValues(["a": n, "b": -n]) } }
        plainly { ref.child("a").removeValue() }
        plainly { ref.child("c").setValue(1) }
        await bench.settle()
        var received: [String] = []
        for _ in 0..<6 { received.append(Self.string(try #require(try await iterator.next()))) }
        #expect(received == ["+a 0", "+b 0 <a", "~a 100", "~b -100 <a", "-a 100", "+c 1 <b"])
    }

    @Test func tooManyWaitingEventsEndTheSequence() async throws {
        let ref = root.child("list")
        plainly { ref.setValue(["a": 1, "b": 2, "c": 3]) }
        var iterator = DatabaseChildEventsSequence(ref, waitingMax: 3).makeAsyncIterator()
        await bench.settle()
        plainly { ref.child("d").setValue(4) }
        await bench.settle()
        let error = await #expect(throws: NSError.self) { try await iterator.next() }
        #expect(error?.domain == "com.firebase" && error?.code == 9999)
        #expect(observers == 0)
        #expect(try await iterator.next() == nil)
    }

    @Test func aReleasedIteratorObservesNothing() async throws {
        plainly { root.child("x").setValue(["a": 1]) }
        for try await snapshot in root.child("x").snapshots {
            #expect(observers == 1 && snapshot.exists())
            break
        }
        #expect(observers == 0)
        for try await event in root.child("x").childEvents() {
            #expect(observers == 1 && event.snapshot.key == "a")
            break
        }
        #expect(observers == 0)
        for try await count in bench.database.pendingWriteCounts {
            #expect(observers == 1 && count == 1)
            break
        }
        #expect(observers == 0)
    }

    /// The sequences.
    enum Form: CaseIterable, Sendable { case snapshots, childEvents, pendingWriteCounts }

    /// Iterates until the end, and returns the number of elements.
    private func iterate(_ form: Form, _ onElement: @escaping @Sendable () -> Void) -> Task<Int, any Error> {
        let (ref, database) = (root.child("x"), bench.database)
        return Task {
            var count = 0
            func take() {
                count += 1
                onElement()
            }
            switch form {
            case .snapshots: for try await _ in ref.snapshots { take() }
            case .childEvents: for try await _ in ref.childEvents() { take() }
            case .pendingWriteCounts: for try await _ in database.pendingWriteCounts { take() }
            }
            return count
        }
    }

    /// The number of elements of an iteration that has to end although nobody cancels it. At the time limit of the suite
    /// it is cancelled, so that a sequence that does not end is a failure of its test instead of a run that hangs.
    private func count(of iteration: Task<Int, any Error>) async throws -> Int {
        try await withTaskCancellationHandler {
            try await iteration.value
        } onCancel: {
            iteration.cancel()
        }
    }

    @Test(arguments: Form.allCases) func endsWithItsTask(_ form: Form) async throws {
        plainly { root.child("x").setValue(["a": 1]) }
        let received = Gathered<Int>()
        let task = iterate(form) { received.append(1) }
        #expect(await eventually { received.values.count == 1 })
        task.cancel()
        #expect(try await task.value == 1)
        #expect(observers == 0)
    }

    @Test(arguments: Form.allCases) func endsAtOnceInACancelledTask(_ form: Form) async throws {
        let task = iterate(form) {}
        task.cancel()
        _ = try await task.value
        #expect(observers == 0)
    }

    @Test(arguments: Form.allCases) func endsWithItsApp(_ form: Form) async throws {
        plainly { root.child("x").setValue(["a": 1]) }
        let received = Gathered<Int>()
        let task = iterate(form) { received.append(1) }
        #expect(await eventually { received.values.count == 1 })
        #expect(await bench.app.delete())
        #expect(try await count(of: task) == 1)
        #expect(observers == 0)
    }

    @Test func endsWhenItsObserverIsRemoved() async throws {
        plainly { root.child("x").setValue(["a": 1]) }
        for form in [Form.snapshots, .childEvents] {
            let received = Gathered<Int>()
            let task = iterate(form) { received.append(1) }
            #expect(await eventually { received.values.count == 1 })
            root.child("x").removeAllObservers()
            #expect(try await count(of: task) == 1)
            #expect(observers == 0)
        }
    }

    @Test func ofADeletedAppThereIsNothing() async throws {
        let (snapshots, events) = (root.child("x").snapshots, root.child("x").childEvents())
        #expect(await bench.app.delete())
        for try await _ in snapshots { Issue.record("a snapshot") }
        for try await _ in events { Issue.record("an event") }
    }

    /// Another client uses the cache: the database cannot start.
    @Test func ofADatabaseThatCannotStartThereIsAnError() async throws {
        let folder = TemporaryFolder()
        let configure: (Database) -> Void = { database in
            database.isPersistenceEnabled = true
            database.persistenceDirectory = URL(fileURLWithPath: folder.path)
        }
        let one = try ApiBench(configure)
        let name = one.database.repository.configuration.cacheFolder
        await one.settle()
        let path = try #require(name)
        let second = Repository(
            configuration: Repository.Configuration(
                location: one.database.repository.configuration.location, appName: "other", cacheFolder: path,
                cacheSizeBytesMax: 10 << 20, provider: Auth.auth(app: one.app)),
            makeDriver: { _, queue in NoServer(queue) })
        let ended = Gathered<String>()
        let stop = second.observePendingWrites(
            onCount: { _ in ended.append("count") }, onEnd: { ended.append($0 == .closed ? "closed" : "failed") })
        #expect(await eventually { ended.values == ["failed"] })
        stop()
        await withCheckedContinuation { continuation in second.close { continuation.resume() } }
        #expect(ended.values == ["failed"])
        await one.app.delete()
    }

    // MARK: Pending writes

    @Test func pendingWritesAreCounted() async throws {
        var iterator = bench.database.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        plainly { root.child("x").setValue(1) }
        #expect(try await iterator.next() == 1)
        plainly { root.updateChildValues(["y": 2, "z": 3]) }
        #expect(try await iterator.next() == 2)
        root.child("t").runTransactionBlock { data in
            data.value = 1
            return .success(withValue: data)
        } andCompletionBlock: { _, _, _ in
        }
        #expect(try await iterator.next() == 3)
        for _ in 0..<10 { plainly { root.child("x").setValue(4) } }
        await bench.settle()
        #expect(try await iterator.next() == 13, "the numbers in between are not delivered")
        bench.database.purgeOutstandingWrites()
        #expect(try await iterator.next() == 0)
    }

    /// A transaction fails when its app is deleted, and the server has not answered it.
    @Test func theEndOfTheAppIsNoAnswer() async throws {
        var iterator = bench.database.pendingWriteCounts.makeAsyncIterator()
        #expect(try await iterator.next() == 0)
        plainly { root.child("x").setValue(1) }
        let failed = Gathered<Bool>()
        root.child("t").runTransactionBlock { data in
            data.value = 1
            return .success(withValue: data)
        } andCompletionBlock: { error, _, _ in
            failed.append(error != nil)
        }
        while let count = try await iterator.next(), count < 2 {}
        #expect(await bench.app.delete())
        #expect(try await iterator.next() == nil)
        #expect(await eventually { failed.values == [true] })
    }

    @Test func pendingWritesOfAnEarlierRunAreCounted() async throws {
        let folder = TemporaryFolder()
        let name = "app-\(UUID())"
        func run(_ body: (Database) async throws -> Void) async throws {
            try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "demo"))
            let app = try #require(FirebaseApp.app(name: name))
            let database = try Database.instance(
                app: app, url: "http://localhost:9000?ns=demo", makeDriver: { _, queue in NoServer(queue) },
                environment: [:])
            database.isPersistenceEnabled = true
            database.persistenceDirectory = URL(fileURLWithPath: folder.path)
            try await body(database)
            #expect(await app.delete())
        }
        try await run { database in
            var iterator = database.pendingWriteCounts.makeAsyncIterator()
            #expect(try await iterator.next() == 0)
            let root = database.reference()
            plainly { root.child("x").setValue(1) }
            plainly { root.child("y").setValue(1) }
            while let count = try await iterator.next(), count < 2 {}
        }
        try await run { database in
            var iterator = database.pendingWriteCounts.makeAsyncIterator()
            let count = try await iterator.next()
            #expect(count == 2)
        }
    }
}
