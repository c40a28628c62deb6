import HearthFirestore

/// A user's notes: in the cache on this device, and on the server as soon as it can be reached.
///
/// No code here checks for a network. Reads return the known data, and writes are in the cache before the call returns.
/// The library sends them in order when it can, also in a later run of the program.
struct NoteStore: Sendable {
    /// The result of a write.
    enum Outcome: Sendable {
        case saved
        /// The write is in the cache, and will be sent to the server.
        case waiting
        /// The server rejected the write; it is undone in the cache, too.
        case refused(any Error)
    }

    struct Unclear: LocalizedError {
        var errorDescription: String?
    }

    /// The time that a command waits for the server's answer to a write.
    private static let patience = Duration.seconds(2)

    private let db: Firestore
    private let notes: CollectionReference

    init(_ options: Options) async throws {
        FirebaseApp.configure(name: "notes", options: FirebaseOptions(projectID: options.project))
        let app = FirebaseApp.app(name: "notes")!
        db = Firestore.firestore(app: app)
        db.useEmulator(withHost: options.host, port: options.port)
        let settings = db.settings
        settings.cacheSettings = PersistentCacheSettings(
            sizeBytes: 100 * 1024 * 1024 as NSNumber, directory: options.cacheFolder)
        settings.dispatchQueue = DispatchQueue(label: "notes.firestore")
        db.settings = settings
        // Each user has their own pending writes in the cache: those of another user wait until that user signs in
        // again.
        let user = try await Auth.auth(app: app).signIn(
            withCustomToken: options.token ?? Self.unsignedToken(of: options.user)
        ).user
        notes = db.collection("users").document(user.uid).collection("notes")
    }

    /// The latest first. Notes that wait for their server time count as the latest.
    private var all: Query { notes.order(by: "changed", descending: true) }

    // MARK: Reading

    func list() async throws -> NoteList { try NoteList(try await all.getDocuments()) }

    func find(tag: String) async throws -> NoteList {
        try NoteList(try await notes.whereField("tags", arrayContains: tag.lowercased()).getDocuments())
    }

    /// The notes now and after every change, including changes of the state of a write or of the network.
    func changes() -> AsyncThrowingMapSequence<Query.QuerySnapshotsSequence, NoteList> {
        all.snapshots(includeMetadataChanges: true).map { try NoteList($0) }
    }

    // MARK: Writing

    func add(_ text: String) async throws -> Outcome {
        let data = try Firestore.Encoder().encode(Note(text: text))
        return await outcome { notes.document().setData(data, completion: $0) }
    }

    func edit(_ id: String, _ text: String) async throws -> Outcome {
        let note = try await document(id)
        let data = try Firestore.Encoder().encode(Note(text: text))
        return await outcome { note.updateData(data, completion: $0) }
    }

    func delete(_ id: String) async throws -> Outcome {
        let note = try await document(id)
        return await outcome { note.delete(completion: $0) }
    }

    /// Waits for the server's answer, success or failure, to all earlier writes.
    func sync() async -> Outcome { await outcome { db.waitForPendingWrites(completion: $0) } }

    // MARK: Network

    func goOffline() async throws { try await db.disableNetwork() }

    func goOnline() async throws { try await db.enableNetwork() }

    func close() async throws { try await db.terminate() }

    // MARK: Helpers

    /// The one note whose id begins with the prefix.
    private func document(_ prefix: String) async throws -> DocumentReference {
        let found = try await list().entries.filter { $0.id.hasPrefix(prefix) }
        guard let first = found.first, found.count == 1, !prefix.isEmpty else {
            throw Unclear(
                errorDescription:
                    "\(found.isEmpty ? "No note has" : "Several notes have") an id that begins with \(prefix).")
        }
        return notes.document(first.id)
    }

    /// Starts a write and waits for its end, but not for long: without a network it does not end.
    private func outcome(_ write: (@escaping @Sendable ((any Error)?) -> Void) -> Void) async -> Outcome {
        let (outcomes, continuation) = AsyncStream<Outcome>.makeStream()
        write { error in continuation.yield(error.map { .refused($0) } ?? .saved) }
        let timer = Task {
            try await Task.sleep(for: Self.patience)
            continuation.yield(.waiting)
        }
        defer { timer.cancel() }
        for await outcome in outcomes { return outcome }
        return .waiting
    }

    /// Servers for local development accept it; others need `--token`.
    private static func unsignedToken(of user: String) throws -> String {
        let claims = try JSONSerialization.data(withJSONObject: ["sub": user, "user_id": user])
        return [Data(#"{"alg":"none","typ":"JWT"}"#.utf8), claims].map { part in
            part.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }.joined(separator: ".") + "."
    }
}
