import Foundation
import Glibc
import HearthFirestore
import HearthTestSupport
import Synchronization
import Testing

/// A disk that is full for a while, or reports errors, fails the calls that need it. All other work waits; nothing is
/// lost, and nothing is applied twice.
///
/// Serialized: the faults apply to the whole process.
@Suite(.serialized, .timeLimit(.minutes(Patience.minutes))) struct DiskTests {
    @Test func aFullDiskIsTransient() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend, isPersistent: true), try Device(backend))
        let folder = try #require(device.folder).path
        let (received, registration) = device.db.collection("c").record()
        try await device.db.document("c/a").setData(["n": 1])
        try await received.latest { $0.string == "a=1" }

        DiskFaults.plant(DiskFaults.Plan(folder: folder, code: ENOSPC) { _ in true })
        await #expect {
            try await device.db.document("c/b").setData(["n": 2])
        } throws: { FirestoreErrorCode.resourceExhausted ~= $0 }
        // Calls that do not need the disk continue; changes from the server cannot be stored.
        #expect(try await device.db.document("c/a").getDocument(source: .cache).get("n") as? Int == 1)
        try await other.db.document("c/a").setData(["n": 3])
        try await received.latest { $0.string == "a=1 cache" }
        await #expect {
            try await device.db.collection("d").getDocuments(source: .server)
        } throws: { FirestoreErrorCode.resourceExhausted ~= $0 }

        DiskFaults.remove(from: folder)
        try await received.latest { $0.string == "a=3" }
        try await device.db.document("c/b").setData(["n": 4])
        try await received.latest { $0.string == "a=3 b=4" }
        #expect(try await device.db.collection("d").getDocuments(source: .server).isEmpty)
        registration.remove()
        await device.end()
        await other.end()
    }

    /// The server has applied the write, which must not be sent again.
    @Test(arguments: [true, false]) func anAnswerThatCannotBeStoredWaits(isAllowed: Bool) async throws {
        let backend = try Backend(
            rules: """
                service cloud.firestore { match /databases/{d}/documents {
                  match /c/{x} { allow read; allow write: if request.resource.data.n < 100; }
                } }
                """)
        let device = try Device(backend, isPersistent: true)
        let folder = try #require(device.folder).path
        let document = device.db.document("c/a")
        try await document.setData(["n": 0])
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "a=0" }

        // The first transactions belong to the write itself. Later ones fail for a while.
        try await device.db.disableNetwork()
        let outcomes = Recorder<String>()
        for number in 0..<5 {
            document.updateData(["n": FieldValue.increment(Int64(number == 2 && !isAllowed ? 1000 : 1))]) {
                outcomes.append($0 == nil ? "made" : "refused")
            }
        }
        try await received.latest { $0.string.hasPrefix(isAllowed ? "a=5*" : "a=1004*") }
        DiskFaults.plant(DiskFaults.Plan(folder: folder, code: EIO) { _ in true })
        device.db.enableNetwork { _ in }
        try await outcomes.first(1)
        // The answer was tried to be stored, and tried again.
        let faults = DiskFaults.count(in: folder)
        try await Waiting.until("more than \(faults) faults") { DiskFaults.count(in: folder) > faults }
        DiskFaults.remove(from: folder)
        try await outcomes.first(5)
        let count = isAllowed ? 5 : 4
        #expect(outcomes.all.count { $0 == "made" } == count)
        try await received.latest { $0.string == "a=\(count)" }
        #expect(try await document.getDocument(source: .server).get("n") as? Int == count)
        registration.remove()
        await device.end()
    }

    @Test func waitingForPendingWritesCompletesAfterAPause() async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: true)
        let folder = try #require(device.folder).path
        let document = device.db.document("c/a")
        // The cache has a Write stream: without one nothing is sent.
        try await document.setData(["n": 0])
        try await device.db.disableNetwork()
        let outcomes = Recorder<String>()
        document.setData(["n": 1]) { outcomes.append($0 == nil ? "made" : "refused") }
        _ = try await document.getDocument(source: .cache)
        DiskFaults.plant(DiskFaults.Plan(folder: folder, code: ENOSPC) { _ in true })
        device.db.enableNetwork { _ in }
        // The server has answered, and the cache cannot store the answer.
        #expect(try await outcomes.first(1) == ["made"])
        let db = device.db
        let waiting = Task { try await db.waitForPendingWrites() }
        _ = try await document.getDocument(source: .cache)
        DiskFaults.remove(from: folder)
        try await waiting.value
        await device.end()
    }

    private static let ownerRules = """
        service cloud.firestore { match /databases/{d}/documents {
          match /c/{x} { allow read; allow write: if request.auth.uid == request.resource.data.by; }
        } }
        """

    /// A user who signs in while the cache cannot be written has their own writes, and not those of the former user.
    @Test func aUserWhoSignsInDuringAPauseHasTheirOwnWrites() async throws {
        let backend = try Backend(rules: Self.ownerRules)
        let (device, other) = (try Device(backend, isPersistent: true), try Device(backend, provider: OwnerToken()))
        let folder = try #require(device.folder).path
        try await device.signIn("alice")
        try await device.db.document("c/a").setData(["by": "alice", "n": 1])
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "a=1" }
        try await device.db.disableNetwork()
        device.db.document("c/secret").setData(["by": "alice", "n": 7]) { _ in }
        try await received.latest { $0.string == "a=1 secret=7* pending cache" }
        DiskFaults.plant(DiskFaults.Plan(folder: folder, code: ENOSPC) { _ in true })
        device.db.enableNetwork { _ in }
        try await other.db.document("c/x").setData(["by": "owner", "n": 3])
        try await Waiting.until("alice's write") {
            try await other.db.document("c/secret").getDocument(source: .server).exists
        }
        try await device.signIn("bob")
        // The server has applied alice's write; its answer waits for the cache.
        try await received.latest { !$0.string.contains("secret=7*") }
        DiskFaults.remove(from: folder)
        try await device.db.document("c/b").setData(["by": "bob", "n": 2])
        try await received.latest { $0.string == "a=1 b=2 secret=7 x=3" }
        // Alice's queue has no pending writes, and it contains none of bob's.
        try await device.signIn("alice")
        try await device.db.waitForPendingWrites()
        try await received.latest { $0.string == "a=1 b=2 secret=7 x=3" }
        registration.remove()
        await device.end()
        await other.end()
    }

    /// The former user's writes remain queued, and are sent when that user signs in again.
    @Test(arguments: 0..<4) func aChangeOfUserThatCannotBeRead(call: Int) async throws {
        let backend = try Backend(rules: Self.ownerRules)
        let device = try Device(backend, isPersistent: true)
        let folder = try #require(device.folder).path
        try await device.signIn("alice")
        try await device.db.disableNetwork()
        let filling = String(repeating: "x", count: 300_000)
        for n in 0..<20 {
            device.db.document("c/a\(n)").setData(["by": "alice", "n": n, "s": filling]) { _ in }
        }
        try await device.restart()
        try await device.db.disableNetwork()
        DiskFaults.plant(
            DiskFaults.Plan(folder: folder, code: EACCES, includesReads: true) { $0 >= call && $0 < call + 8 })
        try await device.signIn("bob")
        try? await device.db.enableNetwork()
        DiskFaults.remove(from: folder)
        try await device.db.document("c/b").setData(["by": "bob", "n": 1])
        try await device.signIn("alice")
        try await device.db.waitForPendingWrites()
        #expect(try await device.db.collection("c").getDocuments(source: .server).count == 21)
        await device.end()
    }

    private static let runsDefault = 4

    /// Whichever calls fail: a write that was reported as committed is applied once, a write that was reported as
    /// failed is not applied, and all devices agree.
    @Test(arguments: TestRun.seeds(runsDefault)) func anyCallMayFail(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let backend = try Backend()
        let (device, other) = (try Device(backend, isPersistent: true), try Device(backend))
        let folder = try #require(device.folder).path
        let (received, registration) = device.db.collection("c").record()
        try await received.latest { $0.string == "" }
        let made = Mutex(Set<Int>())
        let failed = Mutex(Set<Int>())
        let answers = Recorder<Int>()
        var count = 0
        var faults = 0
        for round in 0..<8 {
            faults += DiskFaults.remove(from: folder)
            let every = 1 + random.below(30)
            let length = 1 + random.below(every)
            // For SQLite a read that fails with EIO means damage, even when a later read succeeds.
            let (code, includesReads) = random.pick([(ENOSPC, false), (EIO, false), (EACCES, true)])
            DiskFaults.plant(
                DiskFaults.Plan(folder: folder, code: code, includesReads: includesReads) { $0 % (every * 2) < length })
            for _ in 0..<1 + random.below(12) {
                let number = count
                count += 1
                let batch = device.db.batch()
                batch.setData(
                    ["n": FieldValue.increment(Int64(1)), "all": FieldValue.arrayUnion([number])],
                    forDocument: device.db.document("c/sum"), merge: true)
                batch.setData(["n": number], forDocument: device.db.document("c/\(random.below(4))"))
                batch.commit { error in
                    _ = error == nil ? made.withLock { $0.insert(number) } : failed.withLock { $0.insert(number) }
                    answers.append(number)
                }
            }
            // Any outcome is valid, as long as there is one.
            if random.chance(50) { _ = try? await device.db.collection("e\(round)").getDocuments(source: .server) }
            if random.chance(50) { _ = try? await device.db.document("c/1").getDocument() }
            try await other.db.document("c/other").setData(["n": round])
            // A part of the random schedule: no expectation depends on how long it is.
            if random.chance(30) { try await Task.sleep(for: .milliseconds(random.below(1500))) }
        }
        faults += DiskFaults.remove(from: folder)
        try await answers.first(count)
        try await other.db.document("c/last").setData(["n": 1])
        let fresh = try Device(backend)
        func state(_ device: Device, _ source: FirestoreSource) async throws -> [String] {
            try await device.db.collection("c").getDocuments(source: source).documents.map {
                "\($0.documentID) \($0.data().mapValues { "\($0)" }.sorted { $0.key < $1.key })"
            }
        }
        try await received.latest {
            $0.snapshot?.metadata.isFromCache == false && $0.string.contains("last=1") && !$0.string.contains("pending")
        }
        let expected = try await state(fresh, .server)
        #expect(try await state(device, .cache) == expected, "seed \(seed)")
        let sum = try await fresh.db.document("c/sum").getDocument(source: .server)
        let all = Set((sum.get("all") as? [Int]) ?? [])
        #expect(all == made.withLock { $0 }, "seed \(seed): \(failed.withLock { $0 }) failed, \(faults) faults")
        #expect((sum.get("n") as? Int ?? 0) == all.count, "seed \(seed): applied twice")
        #expect(faults > 0)
        registration.remove()
        for device in [device, other, fresh] { await device.end() }
    }
}
