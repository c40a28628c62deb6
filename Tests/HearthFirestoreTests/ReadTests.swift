import Foundation
import HearthModel
import HearthSync
import HearthTestSupport
import Testing

@testable import HearthFirestore

struct ReadTests {
    private let bench: Bench
    private let query: Query

    init() throws {
        bench = try Bench()
        query = bench.firestore.collection("c")
    }

    private func documentView(_ fields: [String: Value]?, isFromCache: Bool) -> ViewSnapshot {
        bench.view(
            bench.firestore.document("c/d").documentQuery, fields.map { [bench.document("c/d", $0)] } ?? [],
            isFromCache: isFromCache)
    }

    private func code(_ body: () async throws -> Void) async -> Int? {
        do {
            try await body()
            return nil
        } catch {
            #expect((error as NSError).domain == FirestoreErrorDomain)
            return (error as NSError).code
        }
    }

    // MARK: get

    @Test func getFromServer() async throws {
        let document = bench.firestore.document("c/d")
        bench.engine.state.with { $0.firstEvent = .success(documentView(["a": .integer(1)], isFromCache: false)) }
        let snapshot = try await document.getDocument()
        #expect(snapshot.exists)
        #expect(snapshot.data()?["a"] as? Int == 1)
        #expect(!snapshot.metadata.isFromCache)
        let listen = try #require(bench.engine.state.with { $0.listens.first })
        #expect(listen.isRemoved, "the listener is removed before the result is delivered")
        #expect(listen.options.waitsForSyncWhenOnline)
        #expect(listen.options.includesQueryMetadataChanges)
        #expect(listen.options.includesDocumentMetadataChanges)
    }

    @Test func getDocumentOffline() async throws {
        let document = bench.firestore.document("c/d")
        bench.engine.state.with { $0.firstEvent = .success(documentView(nil, isFromCache: true)) }
        for source in [FirestoreSource.default, .server] {
            #expect(await code { _ = try await document.getDocument(source: source) } == 14)
        }
        bench.engine.state.with { $0.firstEvent = .success(documentView(["a": .null], isFromCache: true)) }
        #expect(await code { _ = try await document.getDocument(source: .server) } == 14)
        let cached = try await document.getDocument()
        #expect(cached.exists)
        bench.engine.state.with { $0.firstEvent = .success(documentView(nil, isFromCache: false)) }
        let missing = try await document.getDocument(source: .server)
        #expect(!missing.exists)
    }

    @Test func getDocumentFromCache() async throws {
        let document = bench.firestore.document("c/d")
        #expect(await code { _ = try await document.getDocument(source: .cache) } == 14)
        bench.engine.state.with {
            $0.cached[document.key] = bench.document("c/d", ["a": .integer(1)], state: .hasLocalMutations)
        }
        let found = try await document.getDocument(source: .cache)
        #expect(found.metadata == SnapshotMetadata(hasPendingWrites: true, isFromCache: true))
        bench.engine.state.with { $0.cached[document.key] = ClientDocument(key: document.key, kind: .missing) }
        let missing = try await document.getDocument(source: .cache)
        #expect(!missing.exists)
        #expect(missing.metadata == SnapshotMetadata(hasPendingWrites: false, isFromCache: true))
    }

    @Test func getDocuments() async throws {
        let view = bench.view(query.model, [bench.document("c/1", [:]), bench.document("c/2", [:])], isFromCache: true)
        bench.engine.state.with { $0.firstEvent = .success(view) }
        let snapshot = try await query.getDocuments()
        #expect(snapshot.documents.map(\.documentID) == ["1", "2"])
        #expect(snapshot.count == 2)
        #expect(await code { _ = try await query.getDocuments(source: .server) } == 14)
        bench.engine.state.with { $0.cachedView = view }
        #expect(try await query.getDocuments(source: .cache).count == 2)
    }

    @Test func errorsArriveAsNSErrors() async throws {
        bench.engine.state.with { $0.firstEvent = .failure(Status(.permissionDenied, "not yours")) }
        do {
            _ = try await query.getDocuments()
            Issue.record("must fail")
        } catch FirestoreErrorCode.permissionDenied {
        } catch {
            Issue.record("another error: \(error)")
        }
        do {
            _ = try await query.getDocuments()
        } catch let error as NSError {
            #expect(error.localizedDescription == "not yours")
            #expect(FirestoreErrorCode.Code(rawValue: error.code) == .permissionDenied)
        }
    }

    @Test func errorsCastToTheirCode() async throws {
        bench.engine.state.with { $0.firstEvent = .failure(Status(.permissionDenied, "not yours")) }
        do {
            _ = try await query.getDocuments()
            Issue.record("must fail")
        } catch let error as FirestoreErrorCode {
            #expect(error.code == .permissionDenied && error.errorCode == 7)
            #expect(error.localizedDescription == "not yours" && (error as NSError).domain == FirestoreErrorDomain)
        }
        let received: (any Error)? = await withCheckedContinuation { continuation in
            query.getDocuments { _, error in continuation.resume(returning: error) }
        }
        #expect((received as? FirestoreErrorCode)?.code == .permissionDenied)
        // In the other direction: an error of the program.
        func fail() throws { throw FirestoreErrorCode(.notFound, userInfo: [NSLocalizedDescriptionKey: "gone"]) }
        do { try fail() } catch let error as NSError {
            #expect(error.code == 5 && error.localizedDescription == "gone" && error.domain == FirestoreErrorDomain)
        }
        do { try fail() } catch FirestoreErrorCode.notFound {}
        let foreign: any Error = NSError(domain: "other", code: 7)
        #expect(foreign as? FirestoreErrorCode == nil)
        #expect(FirestoreErrorCode(.aborted) == FirestoreErrorCode(.aborted))
    }

    @Test func anAcknowledgedDocumentEqualsTheSameFromTheServer() {
        func snapshot(_ state: ClientDocument.State, version: Int64 = 3, isPending: Bool = false) -> DocumentSnapshot {
            let document = bench.document("c/a", ["n": .integer(1)], version: version, state: state)
            return DocumentSnapshot(
                firestore: bench.firestore, key: document.key, document: document,
                metadata: SnapshotMetadata(hasPendingWrites: isPending, isFromCache: false))
        }
        #expect(snapshot(.hasCommittedMutations) == snapshot(.synced))
        #expect(snapshot(.synced) != snapshot(.synced, version: 4))
        #expect(snapshot(.hasLocalMutations, isPending: true) != snapshot(.synced))
        func result(_ state: ClientDocument.State, _ n: Int64 = 1) -> QuerySnapshot {
            let document = bench.document("c/a", ["n": .integer(n)], version: 3, state: state)
            return QuerySnapshot(query: query, view: bench.view(query.model, [document]))
        }
        #expect(result(.hasCommittedMutations) == result(.synced))
        #expect(result(.hasCommittedMutations).documentChanges == result(.synced).documentChanges)
        #expect(result(.synced) != result(.synced, 2))
    }

    @Test func completionHandlersRunOnTheUsersQueue() async throws {
        let key = DispatchSpecificKey<Int>()
        let queue = DispatchQueue(label: "mine")
        queue.setSpecific(key: key, value: 7)
        let bench = try Bench {
            let settings = $0.settings
            settings.dispatchQueue = queue
            $0.settings = settings
        }
        let query = bench.firestore.collection("c")
        bench.engine.state.with { $0.firstEvent = .success(bench.view(query.model, [])) }
        let value = await withCheckedContinuation { continuation in
            query.getDocuments { _, _ in continuation.resume(returning: DispatchQueue.getSpecific(key: key)) }
        }
        #expect(value == 7)
    }

    /// As in a program that blocks its main thread.
    @Test func asyncCallsNeedNoQueue() async throws {
        let stuck = DispatchQueue(label: "stuck")
        stuck.suspend()
        defer { stuck.resume() }
        let bench = try Bench {
            let settings = $0.settings
            settings.dispatchQueue = stuck
            $0.settings = settings
        }
        try await bench.firestore.document("c/d").setData(["a": 1])
        try await bench.firestore.waitForPendingWrites()
        #expect(bench.engine.state.with { $0.writes.count } == 1)
    }

    // MARK: Listeners

    @Test func listenersHearUntilRemoved() async throws {
        let received = Locked<[Int]>([])
        let engine = bench.engine
        let registration = query.addSnapshotListener { snapshot, _ in received.with { $0.append(snapshot?.count ?? -1) }
        }
        engine.raise(.success(bench.view(query.model, [bench.document("c/1", [:])])))
        #expect(await eventually { received.with { $0 == [1] } })
        registration.remove()
        registration.remove()
        engine.raise(.success(bench.view(query.model, [])))
        // A second listener's event arrives after the first one's would have.
        let other = Locked(false)
        query.addSnapshotListener { _, _ in other.with { $0 = true } }
        engine.raise(.success(bench.view(query.model, [])), at: 1)
        #expect(await eventually { other.with { $0 } })
        #expect(received.with { $0 } == [1])
        #expect(engine.state.with { $0.listens[0].isRemoved })
        #expect(!engine.state.with { $0.listens[1].isRemoved }, "releasing a registration removes nothing")
    }

    @Test func listenOptions() {
        query.addSnapshotListener(
            options: SnapshotListenOptions().withSource(.cache).withIncludeMetadataChanges(true)
        ) { _, _ in }
        query.addSnapshotListener { _, _ in }
        let listens = bench.engine.state.with { $0.listens }
        #expect(listens[0].options.source == .cache)
        #expect(listens[0].options.includesQueryMetadataChanges)
        #expect(listens[1].options == SyncClient.ListenOptions())
    }

    @Test func documentListeners() async {
        let document = bench.firestore.document("c/d")
        let received = Locked<[DocumentSnapshot?]>([])
        document.addSnapshotListener { snapshot, error in received.with { $0.append(snapshot) } }
        bench.engine.raise(
            .success(
                bench.view(
                    document.documentQuery, [bench.document("c/d", ["a": .integer(1)], state: .hasLocalMutations)],
                    mutated: [document.key], isFromCache: true)))
        bench.engine.raise(.failure(Status(.permissionDenied, "no")))
        #expect(await eventually { received.with { $0.count == 2 } })
        let first = received.with { $0[0] }
        #expect(first?.metadata == SnapshotMetadata(hasPendingWrites: true, isFromCache: true))
        #expect(received.with { $0[1] } == nil)
    }

    @Test func sequences() async throws {
        let engine = bench.engine
        let task = Task { [query] in
            var counts: [Int] = []
            for try await snapshot in query.snapshots {
                counts.append(snapshot.count)
                if counts.count == 2 { break }
            }
            return counts
        }
        #expect(await eventually { engine.state.with { $0.listens.count == 1 } })
        engine.raise(.success(bench.view(query.model, [])))
        engine.raise(.success(bench.view(query.model, [bench.document("c/1", [:])])))
        #expect(try await task.value == [0, 1])
        #expect(await eventually { engine.state.with { $0.listens[0].isRemoved } })
    }

    @Test func sequencesEndWithErrorsAndCancellation() async throws {
        let engine = bench.engine
        let failing = Task { [bench] in
            for try await _ in bench.firestore.document("c/d").snapshots(includeMetadataChanges: true) {}
        }
        #expect(await eventually { engine.state.with { $0.listens.count == 1 } })
        #expect(engine.state.with { $0.listens[0].options.includesQueryMetadataChanges })
        engine.raise(.failure(Status(.permissionDenied, "no")))
        #expect(await code { try await failing.value } == 7)
        let cancelled = Task { [query] in for try await _ in query.snapshots {} }
        #expect(await eventually { engine.state.with { $0.listens.count == 2 } })
        cancelled.cancel()
        try await cancelled.value
        #expect(await eventually { engine.state.with { $0.listens[1].isRemoved } })
    }

    @Test func snapshotsInSync() async {
        let count = Locked(0)
        let registration = bench.firestore.addSnapshotsInSyncListener { count.with { $0 += 1 } }
        #expect(await eventually { count.with { $0 == 1 } })
        registration.remove()
        #expect(bench.engine.state.with { $0.calls } == ["removeInSync"])
    }

    // MARK: Changes

    private func change(_ kind: ViewSnapshot.Change.Kind, _ document: ClientDocument) -> ViewSnapshot.Change {
        ViewSnapshot.Change(kind: kind, document: document)
    }

    @Test func firstChangesAreAdditions() throws {
        let view = bench.view(query.model, [bench.document("c/b", [:]), bench.document("c/a", [:])])
        let changes = QuerySnapshot(query: query, view: view).documentChanges
        #expect(changes.map(\.type) == [.added, .added])
        #expect(changes.map(\.newIndex) == [0, 1])
        #expect(changes.allSatisfy { $0.oldIndex == UInt(NSNotFound) })
        #expect(changes.map(\.document.documentID) == ["a", "b"])
    }

    @Test func laterChangesHaveBothIndexes() throws {
        let ordered = query.order(by: "n")
        func doc(_ id: String, _ n: Int64) -> ClientDocument { bench.document("c/\(id)", ["n": .integer(n)]) }
        let old = [doc("a", 1), doc("b", 2), doc("c", 3), doc("d", 4)]
        let new = [doc("e", 0), doc("d", 4), doc("a", 9)]
        let view = bench.view(
            ordered.model, new, old: old,
            changes: [
                change(.removed, doc("b", 2)), change(.removed, doc("c", 3)), change(.added, doc("e", 0)),
                change(.modified, doc("a", 9)), change(.metadata, doc("d", 4)),
            ], excludesMetadataChanges: false)
        let snapshot = QuerySnapshot(query: ordered, view: view)
        let changes = snapshot.documentChanges
        #expect(changes.map(\.type) == [.removed, .removed, .added, .modified])
        #expect(changes.map(\.oldIndex) == [1, 1, UInt(NSNotFound), 1])
        #expect(changes.map(\.newIndex) == [UInt(NSNotFound), UInt(NSNotFound), 0, 2])
        let all = snapshot.documentChanges(includeMetadataChanges: true)
        #expect(all.count == 5)
        #expect(all[4].type == .modified)
        #expect(all[4].oldIndex == 1 && all[4].newIndex == 1)
        // Applied to the old list, the changes produce the new one.
        var ids = old.map { $0.key.segments[1] }
        for change in changes {
            if change.type != .added { ids.remove(at: Int(change.oldIndex)) }
            if change.type != .removed { ids.insert(change.document.documentID, at: Int(change.newIndex)) }
        }
        #expect(ids == snapshot.documents.map(\.documentID))
    }

    @Test func metadataChangesMustBeAskedFor() {
        let snapshot = QuerySnapshot(query: query, view: bench.view(query.model, []))
        #expect(throws: Status.self) { try snapshot.checkedChanges(includeMetadataChanges: true) }
    }

    @Test func snapshotEquality() {
        let document = bench.document("c/a", ["n": .integer(1)])
        let other = bench.document("c/a", ["n": .double(1)])
        func snapshot(_ document: ClientDocument) -> QuerySnapshot {
            QuerySnapshot(query: query, view: bench.view(query.model, [document]))
        }
        #expect(snapshot(document) == snapshot(document))
        #expect(snapshot(document) != snapshot(other))
        #expect(snapshot(document).documents[0] == snapshot(document).documents[0])
        #expect(snapshot(document).documents[0] != snapshot(other).documents[0])
        #expect(snapshot(document).documentChanges == snapshot(document).documentChanges)
    }
}
