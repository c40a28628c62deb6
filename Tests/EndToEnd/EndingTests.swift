import Foundation
import HearthDatabase
import HearthFirestore
import HearthTestSupport
import Testing

/// Every asynchronous function returns or throws, whatever happens to the app, the task, or the connection.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct EndingTests {
    private typealias Call<Device> = (name: String, run: @Sendable (Device) async throws -> Void)

    /// The calls that need an answer of the server, and those that do not.
    private static let calls: [Call<Device>] = [
        ("setData", { try await $0.db.document("c/a").setData(["n": 1]) }),
        ("setData, merged", { try await $0.db.document("c/a").setData(["n": 1], merge: true) }),
        ("setData, some fields", { try await $0.db.document("c/a").setData(["n": 1], mergeFields: ["n"]) }),
        ("setData, encoding", { try await $0.db.document("c/a").setData(encoding: ["n": 1]) }),
        ("setData, encoding, merged", { try await $0.db.document("c/a").setData(encoding: ["n": 1], merge: true) }),
        (
            "setData, encoding, some fields",
            { try await $0.db.document("c/a").setData(encoding: ["n": 1], mergeFields: ["n"]) }
        ),
        ("updateData", { try await $0.db.document("c/a").updateData(["n": 1]) }),
        ("delete", { try await $0.db.document("c/a").delete() }),
        ("addDocument", { _ = try await $0.db.collection("c").addDocument(data: ["n": 1]) }),
        ("addDocument, encoding", { _ = try await $0.db.collection("c").addDocument(encoding: ["n": 1]) }),
        (
            "commit",
            { device in
                let batch = device.db.batch()
                batch.setData(["n": 1], forDocument: device.db.document("c/a"))
                try await batch.commit()
            }
        ),
        ("getDocument", { _ = try await $0.db.document("d/a").getDocument() }),
        ("getDocument, decoded", { _ = try await $0.db.document("d/a").getDocument(as: [String: Int].self) }),
        ("getDocument, server", { _ = try await $0.db.document("d/a").getDocument(source: .server) }),
        ("getDocument, cache", { _ = try await $0.db.document("d/a").getDocument(source: .cache) }),
        ("getDocuments", { _ = try await $0.db.collection("d").getDocuments() }),
        ("getDocuments, server", { _ = try await $0.db.collection("d").getDocuments(source: .server) }),
        ("getDocuments, cache", { _ = try await $0.db.collection("d").getDocuments(source: .cache) }),
        ("getAggregation", { _ = try await $0.db.collection("d").count.getAggregation(source: .server) }),
        ("getAggregation, cache", { _ = try await $0.db.collection("d").count.getAggregation(source: .cache) }),
        (
            "runTransaction",
            { device in
                let db = device.db
                _ = try await db.runTransaction { transaction, error in
                    do {
                        try transaction.getDocument(db.document("c/a"))
                    } catch let failure as NSError {
                        error?.pointee = failure
                        return nil
                    }
                    transaction.setData(["n": 1], forDocument: db.document("c/a"))
                    return nil
                }
            }
        ),
        (
            "runTransaction, writing only",
            { device in
                let db = device.db
                _ = try await db.runTransaction { transaction, _ in
                    transaction.setData(["n": 1], forDocument: db.document("c/a"))
                    return nil
                }
            }
        ),
        (
            "waitForPendingWrites",
            { device in
                device.db.document("c/b").setData(["n": 1]) { _ in }
                try await device.db.waitForPendingWrites()
            }
        ),
        ("clearPersistence", { try await $0.db.clearPersistence() }),
        ("enableNetwork", { try await $0.db.enableNetwork() }),
        ("loadBundle", { _ = try await $0.db.loadBundle(Data("no bundle".utf8)) }),
        ("loadBundle, stream", { _ = try await $0.db.loadBundle(InputStream(data: Data("no bundle".utf8))) }),
        ("getQuery", { _ = await $0.db.getQuery(named: "q") }),
        ("snapshots of a document", { for try await _ in $0.db.document("e/a").snapshots {} }),
        ("snapshots of a query", { for try await _ in $0.db.collection("e").snapshots {} }),
        ("pendingWriteCounts", { for try await _ in $0.db.pendingWriteCounts {} }),
    ]

    private static let databaseCalls: [Call<DatabaseDevice>] = [
        ("setValue", { _ = try await $0.ref("a").setValue(1) }),
        ("setValue, encoding", { _ = try await $0.ref("a").setValue(encoding: [1]) }),
        ("setValue and priority", { _ = try await $0.ref("a").setValue(1, andPriority: 2) }),
        ("setPriority", { _ = try await $0.ref("a").setPriority(1) }),
        ("removeValue", { _ = try await $0.ref("a").removeValue() }),
        ("updateChildValues", { _ = try await $0.ref("a").updateChildValues(["b": 1]) }),
        ("onDisconnectSetValue", { _ = try await $0.ref("a").onDisconnectSetValue(1) }),
        ("onDisconnectRemoveValue", { _ = try await $0.ref("a").onDisconnectRemoveValue() }),
        ("onDisconnectUpdateChildValues", { _ = try await $0.ref("a").onDisconnectUpdateChildValues(["b": 1]) }),
        ("cancelDisconnectOperations", { _ = try await $0.ref("a").cancelDisconnectOperations() }),
        ("getData", { _ = try await $0.ref("b").getData() }),
        ("observeSingleEvent", { _ = try await $0.ref("c").observeSingleEvent(of: .value) }),
        (
            "observeSingleEventAndPreviousSiblingKey",
            { _ = await $0.ref("c").observeSingleEventAndPreviousSiblingKey(of: .childAdded) }
        ),
        (
            "runTransactionBlock",
            { device in
                _ = try await device.ref("t").runTransactionBlock { data in
                    data.value = 1
                    return .success(withValue: data)
                }
            }
        ),
        ("snapshots", { for try await _ in $0.ref("s").snapshots {} }),
        ("childEvents", { for try await _ in $0.ref("s").childEvents() {} }),
        ("pendingWriteCounts", { for try await _ in $0.db.pendingWriteCounts {} }),
    ]

    /// The calls in progress. Each has run up to the point at which it waits.
    private final class Calls: Sendable {
        private let tasks: [Task<Void, Never>]
        private let names: [String]
        private let ended = Recorder<(String, String)>()

        init<Device: Sendable>(_ calls: [Call<Device>], on device: Device) {
            names = calls.map(\.name)
            var tasks: [Task<Void, Never>] = []
            let ended = ended
            for call in calls {
                tasks.append(
                    Task.immediate {
                        do {
                            try await call.run(device)
                            ended.append((call.name, "returned"))
                        } catch is CancellationError {
                            ended.append((call.name, "cancelled"))
                        } catch {
                            ended.append((call.name, "threw"))
                        }
                    })
            }
            self.tasks = tasks
        }

        func cancel() { for task in tasks { task.cancel() } }

        /// The outcome of each call.
        func wait() async throws -> [String: String] {
            try await Waiting.until("the end of \(Set(names).subtracting(ended.all.map(\.0)).sorted())") {
                ended.all.count == names.count
            }
            return Dictionary(uniqueKeysWithValues: ended.all)
        }
    }

    private static let local: Set<String> = [
        "getDocument, cache", "getDocuments, cache", "getAggregation, cache", "enableNetwork", "loadBundle",
        "loadBundle, stream", "getQuery", "clearPersistence",
    ]
    /// They cannot throw.
    private static let silent: Set<String> = ["observeSingleEventAndPreviousSiblingKey"]
    private static let sequences: Set<String> = [
        "snapshots of a document", "snapshots of a query", "snapshots", "childEvents", "pendingWriteCounts",
    ]

    /// The network accepts all data and delivers none.
    @Test(arguments: [false, true]) func withItsTask(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try Device(backend, isPersistent: isPersistent)
        let calls = Calls(Self.calls, on: device)
        calls.cancel()
        for (name, end) in try await calls.wait() where !Self.local.contains(name) {
            // A sequence whose task is cancelled ends.
            #expect(end == (Self.sequences.contains(name) ? "returned" : "cancelled"), "\(name)")
        }
        // The write is applied, although nothing waits for it any more.
        backend.network.thaw()
        try await device.db.waitForPendingWrites()
        #expect(try await device.db.document("c/b").getDocument(source: .server).exists)
        await device.end()
    }

    @Test(arguments: [false, true]) func withItsApp(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try Device(backend, isPersistent: isPersistent)
        let calls = Calls(Self.calls, on: device)
        await device.end()
        for (name, end) in try await calls.wait() where !Self.local.contains(name) {
            #expect(end == (Self.sequences.contains(name) ? "returned" : "threw"), "\(name)")
        }
        backend.network.thaw()
    }

    /// The server ends without an answer and is started again.
    @Test(arguments: [false, true]) func whenTheServerRestarts(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try Device(backend, isPersistent: isPersistent)
        let database = try DatabaseDevice(backend, folder: isPersistent ? TemporaryFolder() : nil)
        let calls = Calls(Self.calls.filter { !Self.sequences.contains($0.name) }, on: device)
        // There is no child that could be added.
        let ending = Self.databaseCalls.filter { !$0.name.hasSuffix("SiblingKey") && !Self.sequences.contains($0.name) }
        let databaseCalls = Calls(ending, on: database)
        backend.stop()
        backend.network.thaw()
        backend.network.breakConnections()
        try await backend.restart()
        // The document of an update may not exist, and a call that asks the server once may fail because the server was
        // down.
        let asked: Set<String> = [
            "updateData", "getDocument, cache", "getAggregation", "getDocument", "getDocument, decoded",
            "getDocument, server", "getDocuments, server", "runTransaction", "loadBundle", "loadBundle, stream",
            "clearPersistence",
        ]
        for (name, end) in try await calls.wait() where !asked.contains(name) { #expect(end == "returned", "\(name)") }
        for (name, end) in try await databaseCalls.wait() where name != "setPriority" {
            #expect(end == "returned", "\(name)")
        }
        await device.end()
        await database.end()
    }

    @Test func whenRulesRefuse() async throws {
        let backend = try Backend(
            rules: "service cloud.firestore { match /{document=**} { allow read, write: if false; } }")
        let device = try Device(backend)
        // The number of writes is delivered whatever the server answers.
        let calls = Calls(Self.calls.filter { $0.name != "pendingWriteCounts" }, on: device)
        for (name, end) in try await calls.wait() where !Self.local.contains(name) && name != "waitForPendingWrites" {
            #expect(end == "threw", "\(name)")
        }
        await device.end()
    }

    /// Calls that need the server's present state wait for it. All others use the cache.
    @Test func withoutANetwork() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        try await device.db.disableNetwork()
        let asking = Self.calls.filter { $0.name.hasPrefix("get") }
        for (name, end) in try await Calls(asking, on: device).wait() {
            let isKnown = Self.local.contains(name) && name != "getDocument, cache" || name == "getDocuments"
            #expect(end == (isKnown ? "returned" : "threw"), "\(name)")
        }
        await device.end()
    }

    @Test(arguments: [false, true]) func ofADatabaseWithItsTask(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try DatabaseDevice(backend, folder: isPersistent ? TemporaryFolder() : nil)
        let calls = Calls(Self.databaseCalls, on: device)
        calls.cancel()
        for (name, end) in try await calls.wait() {
            #expect(end == (Self.sequences.union(Self.silent).contains(name) ? "returned" : "cancelled"), "\(name)")
        }
        backend.network.thaw()
        await device.end()
    }

    @Test(arguments: [false, true]) func ofADatabaseWithItsApp(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try DatabaseDevice(backend, folder: isPersistent ? TemporaryFolder() : nil)
        let calls = Calls(Self.databaseCalls, on: device)
        await device.end()
        for (name, end) in try await calls.wait() where name != "getData" {
            #expect(end == (Self.sequences.union(Self.silent).contains(name) ? "returned" : "threw"), "\(name)")
        }
        backend.network.thaw()
    }

    @Test func ofADatabaseWhenRulesRefuse() async throws {
        let backend = try Backend(databaseRules: #"{"rules": {".read": false, ".write": false}}"#)
        let device = try DatabaseDevice(backend)
        let accepted: Set<String> = ["cancelDisconnectOperations", "pendingWriteCounts"]
        let calls = Calls(Self.databaseCalls.filter { !accepted.contains($0.name) }, on: device)
        for (name, end) in try await calls.wait() {
            #expect(end == (Self.silent.contains(name) ? "returned" : "threw"), "\(name)")
        }
        await device.end()
    }
}

/// The table above has each public function that suspends, and the calls that end an instance are below.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct EndingCoverageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// The names of the public `async` functions in a folder of the client.
    private static func names(in folder: String) throws -> Set<String> {
        let path = root.appendingPathComponent(folder)
        let files = try #require(FileManager.default.enumerator(atPath: path.path))
        var names: Set<String> = []
        for case let file as String in files where file.hasSuffix(".swift") {
            let source = try String(contentsOf: path.appendingPathComponent(file), encoding: .utf8)
            for match in source.matches(of: /public (?:mutating )?func (\w+)[^{}]*[{]/) {
                // Not the `async` of a parameter: after it there is at most `throws` and the type of the result.
                let end = /\basync(?:\s+throws)?(?:\s*->\s*(?:[^(){}]*|\([^(){}]*\)))?\s*[{]$/
                if match.output.0.contains(end) { names.insert(String(match.output.1)) }
            }
        }
        return names
    }

    @Test(arguments: ["Client/Firestore", "Client/Database", "Client/App"])
    func eachFunctionIsCalled(_ folder: String) throws {
        let tests = try String(contentsOf: URL(fileURLWithPath: #filePath), encoding: .utf8)
        let names = try Self.names(in: folder)
        #expect(names.count > (folder == "Client/App" ? 2 : 10), "the declarations are found: \(names.sorted())")
        // Iterators are called by `for`; tokens are in AuthTests; indexes, which are deprecated, in EngineTests.
        let elsewhere: Set<String> = ["next", "token", "getIDToken", "setIndexConfiguration"]
        for name in names.subtracting(elsewhere).sorted() {
            let isCalled = tests.contains(".\(name)(") || tests.contains(".\(name) {")
            #expect(isCalled, "\(name) is in no table")
        }
    }

    /// These do not wait for the network. An instance ends although the task that ends it is cancelled.
    @Test(arguments: [false, true]) func endingInACancelledTask(isPersistent: Bool) async throws {
        let backend = try Backend()
        backend.network.freeze()
        let device = try Device(backend, isPersistent: isPersistent)
        let database = try DatabaseDevice(backend)
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await #expect(throws: CancellationError.self) { try await device.db.disableNetwork() }
            await #expect(throws: CancellationError.self) { try await device.db.enableNetwork() }
            _ = try await Auth.auth(app: device.app).signIn(withCustomToken: UnsignedToken.of("ada"))
            #expect(await device.db.getQuery(named: "q") == nil)
            let db = device.db
            try await db.terminate()
            try await db.clearPersistence()
            #expect(device.db !== db)
            #expect(await device.app.delete())
            #expect(await database.app.delete())
        }
        try await task.value
        backend.network.thaw()
    }
}

/// An instance that is created while the former one ends waits for the cache.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct NewInstanceTests {
    @Test func aNewInstanceAtOnce() async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: true)
        for round in 0..<20 {
            for number in 0..<20 { device.db.document("c/\(number)").setData(["n": round], completion: nil) }
            let old = device.db
            let ended = Recorder<Int>()
            old.terminate { _ in ended.append(1) }
            try await Waiting.until("a new instance") { device.db !== old }
            device.start()
            try await device.db.document("c/x").setData(["n": round])
            try await ended.first(1)
        }
        await device.end()
    }
}

/// Deleted apps leave no resources behind: test suites create one app per case.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct LeftoverTests {
    /// An object that a listener's closure captures, to test whether the closure is released.
    private final class Held: Sendable {}

    private static var descriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    @Test(arguments: [false, true]) func appsThatEndAreLetGo(isPersistent: Bool) async throws {
        let backend = try Backend()
        weak var firestore: Firestore?
        weak var database: Database?
        weak var listening: Held?
        weak var observing: Held?
        func round(isLast: Bool) async throws {
            let device = try Device(backend, isPersistent: isPersistent)
            let other = try DatabaseDevice(backend, folder: isPersistent ? TemporaryFolder() : nil)
            let (first, second) = (Held(), Held())
            // Neither listener is removed.
            let received = Recorder<Int>()
            device.db.collection("c").addSnapshotListener { [first] _, _ in
                withExtendedLifetime(first) { received.append(1) }
            }
            other.ref("c").observe(.value) { [second] _ in withExtendedLifetime(second) { received.append(2) } }
            if isLast { try await received.first(2) }
            (firestore, database, listening, observing) = (device.db, other.db, first, second)
            await device.end()
            await other.end()
        }
        try await round(isLast: true)
        let before = Self.descriptors
        for _ in 0..<500 { try await round(isLast: false) }
        try await round(isLast: true)
        // Other tests have open descriptors as well.
        #expect(Self.descriptors - before < 250)
        // Work that is already queued on the users' queues runs first.
        try await Waiting.until("the end of the app's objects") {
            firestore == nil && database == nil && listening == nil && observing == nil
        }
    }

    @Test func listenersThatAreRefusedAreLetGo() async throws {
        let backend = try Backend(
            rules: "service cloud.firestore { match /{document=**} { allow read: if false; } }",
            databaseRules: #"{"rules": {".read": false}}"#)
        let device = try Device(backend)
        let database = try DatabaseDevice(backend)
        weak var listening: Held?
        weak var observing: Held?
        func listen() async throws {
            let (first, second) = (Held(), Held())
            (listening, observing) = (first, second)
            let errors = Recorder<Int>()
            device.db.collection("c").addSnapshotListener { [first] _, error in
                withExtendedLifetime(first) { if error != nil { errors.append(1) } }
            }
            database.ref("c").observe(.value) { [second] _ in
                withExtendedLifetime(second) {}
            } withCancel: { _ in
                errors.append(2)
            }
            try await errors.first(2)
        }
        try await listen()
        try await Waiting.until("the end of rejected listeners") { listening == nil && observing == nil }
        await device.end()
        await database.end()
    }
}
