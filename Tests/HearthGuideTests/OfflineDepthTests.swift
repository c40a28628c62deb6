import Foundation
import Glibc
import HearthFirestore
import HearthTestSupport
import Testing

/// What `docs/guide/offline-depth.md` says, tried with its samples.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct OfflineDepthTests {
    private func withBench(_ body: (GuideBench) async throws -> Void) async throws {
        let bench = try GuideBench()
        do {
            try await body(bench)
        } catch {
            try await bench.end()
            throw error
        }
        try await bench.end()
    }

    private func code(_ call: () async throws -> Void) async -> FirestoreErrorCode.Code? {
        do {
            try await call()
            return nil
        } catch {
            return FirestoreErrorCode.Code(rawValue: (error as NSError).code)
        }
    }

    // MARK: What completes when

    @Test func localEffectsNeedNoServer() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            try await db.disableNetwork()
            let note = OfflineDepth.new(db)
            #expect(note.documentID.count == 20)
            let read = try await note.getDocument()
            #expect(read.get("title") as? String == "Written in the train")
            #expect(OfflineDepth.metadata(read) == "on this device, not yet at the server")

            let screen = Screen()
            try await OfflineDepth.patient(db, .milliseconds(1), screen.show)
            #expect(screen.lines == ["Saved on this device; it is sent later."])
            try await db.enableNetwork()
            // The write was not cancelled, only the waiting.
            try await db.waitForPendingWrites()
            let sent = try await db.document("notes/plan").getDocument(source: .server)
            #expect(sent.get("title") as? String == "Plan")
            #expect(OfflineDepth.metadata(sent) == "as at the server")
            try await OfflineDepth.patient(db, .seconds(Patience.seconds), screen.show)
            #expect(screen.lines.last == "The server has it.")
        }
    }

    @Test func whatNeedsTheServerIsUnavailable() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            try await db.document("notes/a").setData(["stars": 3])
            _ = try await db.collection("notes").getDocuments()
            try await db.disableNetwork()
            let notes = db.collection("notes")
            #expect(try await notes.getDocuments().count == 1)
            #expect(try await db.collection("empty").getDocuments().isEmpty)
            #expect(await code { _ = try await db.document("notes/none").getDocument() } == .unavailable)
            #expect(await code { _ = try await notes.getDocuments(source: .server) } == .unavailable)
            #expect(await code { _ = try await notes.count.getAggregation(source: .server) } == .unavailable)
            #expect(try await notes.count.getAggregation(source: .cache).count == 1)
            #expect(
                OfflineDepth.metadata(try await db.document("notes/a").getDocument())
                    == "from this device, perhaps out of date")
        }
    }

    /// Runs a transaction of one attempt, and returns its error's code, 0 for none.
    private func transaction(_ db: Firestore, _ attempts: Screen) async -> Int {
        let options = TransactionOptions()
        options.maxAttempts = 1
        return await withCheckedContinuation { continuation in
            db.runTransaction(with: options) { transaction, errorPointer in
                attempts.show("attempt")
                do {
                    _ = try transaction.getDocument(db.document("notes/a"))
                } catch let error as NSError {
                    errorPointer?.pointee = error
                }
                return nil
            } completion: { _, error in
                continuation.resume(returning: (error as NSError?)?.code ?? 0)
            }
        }
    }

    @Test func transactionsCallTheServer() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let attempts = Screen()
            try await db.disableNetwork()
            #expect(await transaction(db, attempts) == 0)

            let lost = bench.firestore(database: "lost")
            // Nothing listens at this port.
            lost.useEmulator(withHost: "127.0.0.1", port: 1)
            #expect(await transaction(lost, attempts) == FirestoreErrorCode.Code.unavailable.rawValue)
            #expect(attempts.lines.count == 2)
        }
    }

    // MARK: The order and the fate of writes

    @Test func fieldsOfSeveralDevicesAreMerged() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let other = try GuideBench(project: bench.app.options.projectID ?? "")
            let elsewhere = other.firestore()
            try await db.document("notes/trip").setData(["title": "Trip", "body": "", "reads": 1, "tags": ["trip"]])
            try await db.disableNetwork()
            OfflineDepth.merge(db)
            try await elsewhere.document("notes/trip").updateData([
                "title": "Trip on Friday", "body": "Bread", "reads": FieldValue.increment(Int64(10)),
                "tags": FieldValue.arrayUnion(["family"]),
            ])
            try await db.enableNetwork()
            try await db.waitForPendingWrites()
            let trip = try await elsewhere.document("notes/trip").getDocument(source: .server)
            // The write that arrives last wins, field by field.
            #expect(trip.get("title") as? String == "Trip on Sunday" && trip.get("body") as? String == "Bread")
            #expect(trip.get("reads") as? Int == 12)
            #expect(trip.get("tags") as? [String] == ["trip", "family", "weekend"])
            try await other.end()
        }
    }

    @Test func aStaleEditIsRefusedAndTakenBack() async throws {
        try await withBench { bench in
            let db = bench.firestore(database: "versioned")
            let other = try GuideBench(project: bench.app.options.projectID ?? "")
            let elsewhere = other.firestore(database: "versioned")
            let screen = Screen()
            let reference = db.document("notes/trip")
            try await reference.setData(["title": "Trip", "version": 1])
            OfflineDepth.version(try await reference.getDocument(), screen.show)
            try await screen.wait(for: "The server has it.")

            try await db.disableNetwork()
            let read = try await reference.getDocument(source: .cache)
            #expect(read.get("version") as? Int == 2)
            OfflineDepth.version(read, screen.show)
            // A later write of the same device does not depend on the one that fails.
            db.document("notes/other").setData(["title": "Other"], completion: nil)
            try await elsewhere.document("notes/trip").updateData(["title": "Trip on Friday", "version": 3])
            try await db.enableNetwork()
            try await screen.wait(for: "Somebody else changed it before.")
            try await db.waitForPendingWrites()
            #expect(try await reference.getDocument(source: .server).get("title") as? String == "Trip on Friday")
            #expect(try await elsewhere.document("notes/other").getDocument(source: .server).exists)
            try await other.end()
        }
    }

    @Test func theRulesOfThePageAreThose() throws {
        let rules = try GuidePages.file("Tests/HearthGuideTests/versioned.rules")
        #expect(try GuidePages.file("docs/guide/offline-depth.md").contains("```\n\(rules)```\n"))
    }

    // MARK: Users, and the cache's file

    @Test func signingOutAndClearing() async throws {
        try await withBench { bench in
            let db = bench.firestore(database: "guarded")
            Connecting.folder(db, bench.folder)
            let auth = Auth.auth(app: bench.app)
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "eva"))
            db.document("notes/eva").setData(["title": "Eva's"], completion: nil)
            try await OfflineDepth.signOut(db, bench.app)

            let next = bench.firestore(database: "guarded")
            Connecting.folder(next, bench.folder)
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "adam"))
            #expect(try await next.collection("notes").getDocuments(source: .cache).isEmpty)
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "eva"))
            #expect(try await next.document("notes/eva").getDocument(source: .server).exists)
        }
    }

    @Test func writesWaitForTheirUser() async throws {
        try await withBench { bench in
            let db = bench.firestore()
            let auth = Auth.auth(app: bench.app)
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "eva"))
            try await db.disableNetwork()
            let note = db.document("notes/eva")
            note.setData(["title": "Eva's"], completion: nil)
            let screen = Screen()
            db.waitForPendingWrites { error in screen.show("\((error as NSError?)?.code ?? 0)") }
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "adam"))
            try await screen.wait(for: "\(FirestoreErrorCode.Code.cancelled.rawValue)")
            try await db.enableNetwork()
            try await db.waitForPendingWrites()
            #expect(try await note.getDocument(source: .server).exists == false)
            try await auth.signIn(withCustomToken: GuideBench.token(uid: "eva"))
            try await db.waitForPendingWrites()
            #expect(try await note.getDocument(source: .server).exists)
        }
    }

    /// What `docs/guide/moving.md` says of an app whose server moves: a cache does not belong to an address.
    @Test func writesThatWaitGoToTheNewAddress() async throws {
        try await withBench { bench in
            let before = bench.firestore()
            // Nothing listens at this port.
            before.useEmulator(withHost: "127.0.0.1", port: 1)
            Connecting.folder(before, bench.folder)
            before.document("notes/trip").setData(["title": "Trip"], completion: nil)
            #expect(try await before.document("notes/trip").getDocument(source: .cache).exists)
            try await Connecting.end(before)

            let after = bench.firestore()
            Connecting.folder(after, bench.folder)
            try await after.waitForPendingWrites()
            #expect(try await after.document("notes/trip").getDocument(source: .server).exists)
        }
    }

    /// The lock of another process, as `flock` sees it: of a descriptor of its own.
    @Test func aCacheServesOneProcess() async throws {
        try await withBench { bench in
            let first = bench.firestore()
            Connecting.folder(first, bench.folder)
            try await first.document("notes/a").setData(["stars": 1])
            try await Connecting.end(first)
            let names = try FileManager.default.subpathsOfDirectory(atPath: bench.folder.path)
            let lock = try #require(names.first { $0.hasSuffix(".lock") })
            let descriptor = open(bench.folder.appendingPathComponent(lock).path, O_RDWR)
            #expect(descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0)

            let second = bench.firestore()
            Connecting.folder(second, bench.folder)
            #expect(await code { try await second.document("notes/a").setData([:]) } == .failedPrecondition)
            #expect(await code { _ = try await second.collection("notes").getDocuments() } == .failedPrecondition)
            close(descriptor)
            #expect(try await second.document("notes/a").getDocument(source: .cache).get("stars") as? Int == 1)
        }
    }
}
