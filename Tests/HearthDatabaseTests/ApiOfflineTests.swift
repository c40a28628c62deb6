import Foundation
import HearthApp
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthDatabase

/// The public API over the engine, without a server: writes are visible immediately, and never acknowledged.
struct ApiOfflineTests {
    private let bench: ApiBench
    private let root: DatabaseReference
    private let log = Locked<[String]>([])

    init() throws {
        bench = try ApiBench()
        root = bench.database.reference()
    }

    private func note(_ string: String) { log.with { $0.append(string) } }

    private func noted() async -> [String] {
        await bench.settle()
        return log.with { log in
            defer { log = [] }
            return log
        }
    }

    // MARK: Persistence

    @Test func aWriteIsStoredWhenItsCallReturns() async throws {
        let folder = TemporaryFolder()
        let bench = try ApiBench {
            $0.isPersistenceEnabled = true
            $0.persistenceDirectory = URL(fileURLWithPath: folder.path)
        }
        let root = bench.database.reference()
        let isBusy = DispatchSemaphore(value: 0)
        let mayContinue = DispatchSemaphore(value: 0)
        bench.database.repository.queue.async {
            isBusy.signal()
            mayContinue.wait()
        }
        try await blocking { isBusy.wait() }
        plainly {
            root.child("a").setValue(["b": 1, "c": ServerValue.increment(2)])
            root.child("a").updateChildValues(["d/e": "f", "b": 3])
            root.child("a/d").setPriority("p")
            root.child("x").setValue(1)
            root.child("x").removeValue()
            root.child("y").childByAutoId().setValue(true)
        }
        let cache = try #require(bench.database.repository.configuration.cacheFolder)
        func stored() throws -> TemporaryFolder {
            let copy = TemporaryFolder()
            for name in try FileManager.default.contentsOfDirectory(atPath: cache) {
                try FileManager.default.copyItem(atPath: "\(cache)/\(name)", toPath: "\(copy.path)/\(name)")
            }
            return copy
        }
        let killed = try stored()
        mayContinue.signal()
        await bench.settle()
        // Now the writes are in the journal and in the database.
        for copy in [killed, try stored()] {
            let later = try EngineFixture(#"{"a":{"c":5}}"#, folder: copy.path, connects: false)
            #expect(later.clock.reports.isEmpty)
            #expect(later.engine.sync.writes.writes.count == 6)
            later.connection.connect()
            later.run()
            #expect(
                treeString(later.server.tree.child("a"))
                    == #"{"b":3,"c":7,"d":{"e":"f",".priority":"p"}}"#)
            #expect(treeString(later.server.tree.child("x")) == "null")
            later.engine.close(.closed)
        }
        await bench.app.delete()
    }

    // MARK: References

    @Test func references() throws {
        let ref = root.child("a/b c")
        #expect(ref.key == "b c")
        #expect(ref.parent?.key == "a")
        #expect(ref.parent?.parent?.key == nil)
        #expect(ref.root.parent == nil)
        #expect(ref.url == "http://localhost:9000/a/b%20c")
        #expect(ref.description() == ref.url)
        #expect("\(ref)" == ref.url)
        #expect(root.url == "http://localhost:9000/")
        #expect(ref.database === bench.database)
        #expect(bench.database.reference(fromURL: ref.url).key == "b c")
        #expect(bench.database.reference(withPath: "/x//y/").url == "http://localhost:9000/x/y")
        #expect(root.child(".info/connected").key == "connected")
        #expect(root.child("a") !== root.child("a"))
        #expect(root.child("a") != root.child("a"), "by identity, as on Apple platforms")
        let query = ref.queryOrderedByKey()
        #expect(query.ref.url == ref.url)
        #expect(throws: Status.self) { try bench.database.path(ofURL: "http://localhost:9001/a") }
    }

    @Test func instances() async throws {
        let url = "http://localhost:9000?ns=demo"
        let again = try Database.instance(
            app: bench.app, url: url, makeDriver: { _, queue in NoServer(queue) }, environment: [:])
        #expect(again === bench.database)
        let other = try Database.instance(
            app: bench.app, url: "https://demo.firebaseio.com", makeDriver: { _, queue in NoServer(queue) },
            environment: ["FIREBASE_DATABASE_EMULATOR_HOST": "127.0.0.1:9100"])
        #expect(other !== bench.database)
        #expect(other.reference().url == "http://127.0.0.1:9100/")
        #expect(throws: Status.self) {
            try Database.instance(
                app: bench.app, url: url + "/", makeDriver: { _, queue in NoServer(queue) },
                environment: ["FIREBASE_DATABASE_EMULATOR_HOST": "nonsense"])
        }
        #expect(throws: Status.self) {
            try Database.instance(
                app: bench.app, url: "https://demo.firebaseio.com/a", makeDriver: { _, queue in NoServer(queue) },
                environment: [:])
        }
        #expect(bench.database.app === bench.app)
        #expect(await bench.app.delete())
        await #expect(throws: NSError.self, "it is deleted") { try await root.setValue(1) }
        let next = try ApiBench()
        #expect(await next.app.delete())
        #expect(throws: Status.self) { _ = try next.database.checkedRepository() }
    }

    @Test func newKeysAreInOrder() {
        var keys: [String] = []
        for _ in 0..<1_000 { keys.append(root.child("x").childByAutoId().key ?? "") }
        #expect(keys.allSatisfy { $0.utf8.count == 20 })
        #expect(keys == keys.sorted { $0.utf16.lexicographicallyPrecedes($1.utf16) })
        #expect(Set(keys).count == 1_000)
    }

    // MARK: Observing

    @Test func ownWritesAreVisibleImmediately() async {
        let ref = root.child("list")
        plainly { ref.setValue(["a": 1, "b": 2, "c": 3]) }
        ref.observe(.childAdded, andPreviousSiblingKeyWith: { note("added \($0.key) after \($1 ?? "-")") })
        ref.observe(.childChanged, with: { note("changed \($0.key) \($0.value as? Int ?? 0)") })
        ref.observe(.childRemoved, with: { note("removed \($0.key)") })
        ref.observe(.value, with: { note("value \($0.childrenCount)") })
        #expect(
            await noted() == ["added a after -", "added b after a", "added c after b", "value 3"])
        plainly { ref.updateChildValues(["b": NSNull(), "c": 4, "d": 5]) }
        #expect(await noted() == ["removed b", "added d after c", "changed c 4", "value 3"])
        plainly { ref.child("a").removeValue() }
        #expect(await noted() == ["removed a", "value 2"])
    }

    @Test func snapshots() async throws {
        let ref = root.child("city")
        plainly {
            ref.setValue(
                ["name": "Bern", "pop": 140_000, "tags": ["x", "y"], ".priority": 7] as [String: Any])
        }
        let snapshot = try await ref.observeSingleEvent(of: .value)
        #expect(snapshot.key == "city")
        #expect(snapshot.exists() && snapshot.hasChildren() && snapshot.hasChild("tags/0"))
        #expect(!snapshot.hasChild("tags/2"))
        #expect(snapshot.priority as? Int == 7)
        #expect((snapshot.value as? [String: Any])?["pop"] as? Int == 140_000)
        #expect((snapshot.valueInExportFormat() as? [String: Any])?[".priority"] as? Int == 7)
        #expect(snapshot.childSnapshot(forPath: "tags").value as? [String] == ["x", "y"])
        #expect(snapshot.childSnapshot(forPath: "no").value is NSNull)
        #expect(snapshot.childSnapshot(forPath: "tags/1").ref.url == ref.url + "/tags/1")
        #expect(snapshot.children.compactMap { ($0 as? DataSnapshot)?.key } == ["name", "pop", "tags"])
        struct City: Codable, Equatable {
            var name: String
            var pop: Int
            var tags: [String]
        }
        #expect(try snapshot.data(as: City.self) == City(name: "Bern", pop: 140_000, tags: ["x", "y"]))
        #expect(try snapshot.childSnapshot(forPath: "no").data(as: City?.self) == nil)
        try ref.setValue(from: City(name: "Thun", pop: 1, tags: []))
        let (next, previous) = await ref.observeSingleEventAndPreviousSiblingKey(of: .value)
        #expect(next.childSnapshot(forPath: "name").value as? String == "Thun")
        #expect(previous == nil)
    }

    @Test func queriesOrderAndBound() async throws {
        let ref = root.child("people")
        plainly { ref.setValue(["a": ["age": 30], "b": ["age": 10], "c": ["age": 20], "d": ["name": "x"]]) }
        func keys(_ query: DatabaseQuery) async throws -> [String] {
            let snapshot = try await query.observeSingleEvent(of: .value)
            return snapshot.children.compactMap { ($0 as? DataSnapshot)?.key }
        }
        #expect(try await keys(ref.queryOrdered(byChild: "age")) == ["d", "b", "c", "a"])
        #expect(try await keys(ref.queryOrdered(byChild: "age").queryStarting(atValue: 20)) == ["c", "a"])
        #expect(try await keys(ref.queryOrdered(byChild: "age").queryStarting(afterValue: 20)) == ["a"])
        #expect(try await keys(ref.queryOrdered(byChild: "age").queryEnding(beforeValue: 20)) == ["d", "b"])
        #expect(try await keys(ref.queryOrdered(byChild: "age").queryEqual(toValue: 10)) == ["b"])
        #expect(try await keys(ref.queryOrdered(byChild: "age").queryLimited(toLast: 2)) == ["c", "a"])
        #expect(try await keys(ref.queryOrderedByKey().queryStarting(afterValue: "b")) == ["c", "d"])
        #expect(try await keys(ref.queryLimited(toFirst: 2)) == ["a", "b"])
    }

    @Test func removedObserversReceiveNothing() async {
        let ref = root.child("x")
        let other = root.child("x").queryLimited(toLast: 1)
        plainly { ref.setValue(["a": 1]) }
        let first = ref.observe(.value) { _ in note("first") }
        let second = other.observe(.value) { _ in note("second") }
        root.child("y").observe(.value) { _ in note("other") }
        #expect(first != 0 && second > first)
        _ = await noted()
        // An observer of another query stays.
        other.removeObserver(withHandle: first)
        root.child("y").removeObserver(withHandle: first)
        plainly { ref.child("a").setValue(2) }
        #expect(Set(await noted()) == ["first", "second"])
        ref.removeObserver(withHandle: first)
        plainly { ref.child("a").setValue(3) }
        #expect(await noted() == ["second"])
        // On a reference the call removes the observers of all queries of the location.
        ref.removeObserver(withHandle: second)
        plainly { ref.child("a").setValue(4) }
        #expect(await noted() == [])
        ref.observe(.value) { _ in note("third") }
        other.observe(.value) { _ in note("fourth") }
        _ = await noted()
        other.removeAllObservers()
        plainly { ref.child("a").setValue(5) }
        #expect(await noted() == ["third"])
        ref.removeAllObservers()
        plainly { ref.child("a").setValue(6) }
        #expect(await noted() == [])
    }

    @Test func removingDropsPendingEvents() async {
        let ref = root.child("x")
        plainly { ref.setValue(1) }
        let handle = Locked<DatabaseHandle>(0)
        // The first event may come before `observe` returns: it waits for the handle.
        handle.with { handleNow in
            handleNow = ref.observe(.value) { snapshot in
                note("value \(snapshot.value as? Int ?? 0)")
                ref.removeObserver(withHandle: handle.with { $0 })
            }
        }
        plainly { ref.setValue(2) }
        plainly { ref.setValue(3) }
        #expect(await noted() == ["value 1"])
    }

    @Test(.timeLimit(.minutes(Patience.minutes))) func removingEndsAsyncWaits() async throws {
        let ref = root.child("never")
        let hasEnded = Locked(false)
        let waiting = Task {
            defer { hasEnded.with { $0 = true } }
            return try await ref.observeSingleEvent(of: .value)
        }
        // The observer may be added after any of these calls.
        while !hasEnded.with({ $0 }) {
            ref.removeAllObservers()
            await Task.yield()
        }
        let error = await #expect(throws: NSError.self) { try await waiting.value }
        #expect(error?.domain == "com.firebase" && error?.code == 9999)
        #expect(error?.localizedFailureReason == "The observer was removed before it received an event.")
    }

    @Test func singleEvents() async {
        let ref = root.child("x")
        ref.observeSingleEvent(of: .childAdded) { note("added \($0.key)") }
        #expect(await noted() == [])
        plainly { ref.setValue(["a": 1, "b": 2]) }
        #expect(await noted() == ["added a"])
        plainly { ref.child("c").setValue(1) }
        #expect(await noted() == [])
    }

    @Test func callbacksRunOnTheChosenQueue() async {
        let key = DispatchSpecificKey<Bool>()
        let queue = DispatchQueue(label: "chosen", attributes: .concurrent)
        queue.setSpecific(key: key, value: true)
        bench.database.callbackQueue = queue
        #expect(bench.database.callbackQueue === queue)
        let ref = root.child("x")
        let isRunning = Locked(false)
        for index in 0..<50 {
            ref.observe(.value) { _ in
                #expect(DispatchQueue.getSpecific(key: key) == true)
                #expect(!isRunning.with { $0 }, "one after another, though the queue is concurrent")
                isRunning.with { $0 = true }
                note("\(index)")
                isRunning.with { $0 = false }
            }
        }
        plainly { ref.setValue(1) }
        #expect(await noted().count == 50)
    }

    @Test func info() async {
        root.child(".info/connected").observe(.value) { note("connected \($0.value as? Bool ?? true)") }
        root.child(".info/serverTimeOffset").observe(.value) { note("offset \($0.exists())") }
        let notes = await noted()
        #expect(notes.contains("connected false"), "\(notes)")
    }

    // MARK: Transactions and failures

    @Test func transactionsAreVisibleImmediately() async {
        let ref = root.child("count")
        plainly { ref.setValue(4) }
        ref.observe(.value) { note("value \($0.value as? Int ?? -1)") }
        _ = await noted()
        plainly {
            ref.runTransactionBlock { data in
                data.value = (data.value as? Int ?? 0) + 1
                return .success(withValue: data)
            }
        }
        #expect(await noted() == ["value 5"])
        ref.runTransactionBlock({ _ in .abort() }) { error, isCommitted, snapshot in
            note("aborted \(error == nil) \(isCommitted) \(snapshot?.value as? Int ?? -1)")
        }
        #expect(await noted() == ["aborted true false 5"])
    }

    @Test func mutableData() async throws {
        let ref = root.child("post")
        plainly { ref.setValue(["stars": ["ada": true], "title": "x"] as [String: Any], andPriority: 3) }
        plainly {
            ref.runTransactionBlock { data in
                #expect(data.key == "post" && data.childrenCount == 2 && data.hasChildren())
                #expect(data.priority as? Int == 3)
                #expect(data.hasChild(atPath: "stars/ada") && !data.hasChild(atPath: "stars/bob"))
                let stars = data.childData(byAppendingPath: "stars")
                stars.childData(byAppendingPath: "bob").value = true
                stars.childData(byAppendingPath: "ada").value = nil
                #expect((data.value as? [String: Any])?["stars"] as? [String: Bool] == ["bob": true])
                #expect(data.children.compactMap { ($0 as? MutableData)?.key } == ["stars", "title"])
                data.priority = "p"
                let result = TransactionResult.success(withValue: data)
                data.value = "too late"
                return result
            }
        }
        let snapshot = try await ref.observeSingleEvent(of: .value)
        #expect(snapshot.priority as? String == "p")
        #expect(snapshot.childSnapshot(forPath: "stars").value as? [String: Bool] == ["bob": true])
    }

    @Test func purgingCancelsWrites() async {
        let ref = root.child("x")
        ref.observe(.value) { note("value \($0.value as? Int ?? -1)") }
        ref.setValue(1) { error, _ in
            let error = error as NSError?
            note("\(error?.domain ?? "") \(error?.code ?? 0)")
        }
        ref.onDisconnectSetValue(2) { error, _ in note("on disconnect \((error as NSError?)?.code ?? 0)") }
        _ = await noted()
        bench.database.purgeOutstandingWrites()
        let notes = await noted()
        #expect(Set(notes).isSuperset(of: ["com.firebase 3", "on disconnect 3"]), "\(notes)")
    }

    @Test func emptyUpdatesComplete() async throws {
        try await root.updateChildValues([:])
        try await root.onDisconnectUpdateChildValues([:])
        root.updateChildValues([:]) { error, _ in note("\(error == nil)") }
        #expect(await noted() == ["true"])
    }

    @Test func getDataOffline() async {
        await #expect {
            _ = try await root.child("nothing").getData()
        } throws: { error in
            let error = error as NSError
            return error.domain == "com.firebase.core" && error.code == 1
        }
    }

    @Test func engineThatCannotStart() async throws {
        let folder = "/proc/no-such-folder"
        let bench = try ApiBench {
            $0.isPersistenceEnabled = true
            $0.persistenceDirectory = URL(fileURLWithPath: folder)
        }
        let ref = bench.database.reference()
        await #expect(throws: NSError.self) { try await ref.setValue(1) }
        await #expect(throws: NSError.self) { _ = try await ref.getData() }
        await #expect(throws: NSError.self) { _ = try await ref.runTransactionBlock { .success(withValue: $0) } }
        ref.observe(.value, with: { _ in note("value") }, withCancel: { _ in note("cancelled") })
        await bench.settle()
        #expect(await noted() == ["cancelled"])
    }

    @Test func persistence() async throws {
        let folder = TemporaryFolder()
        func make() throws -> ApiBench {
            try ApiBench {
                $0.isPersistenceEnabled = true
                $0.persistenceDirectory = URL(filePath: folder.path)
                $0.persistenceCacheSizeBytes = 2 << 20
            }
        }
        // The cache belongs to the app's name, which is the same for both.
        let first = try make()
        plainly { first.database.reference(withPath: "a").setValue(["b": 1]) }
        await first.settle()
        #expect(await first.app.delete())
        let caches = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        #expect(caches == [first.app.name])
    }
}
