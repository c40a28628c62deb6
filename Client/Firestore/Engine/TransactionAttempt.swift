internal import HearthModel
internal import HearthSync

/// The reads and writes of one attempt of a transaction. They come from the user's thread, one after another.
final class TransactionAttempt: Sendable {
    private struct State {
        /// `Timestamp.none` for a missing document.
        var versions: [ResourcePath: ModelTimestamp] = [:]
        var mutations: [Mutation] = []
        var written: Set<ResourcePath> = []
        /// Reported by the commit, because a write cannot throw.
        var failure: Status?
        var isCommitted = false
    }

    private let engine: any FirestoreEngine
    private let state = Locked(State())

    init(engine: any FirestoreEngine) { self.engine = engine }

    func read(_ key: ResourcePath) async throws(Status) -> ClientDocument {
        try state.with { (state) throws(Status) in
            if !state.mutations.isEmpty {
                let failure = Status.invalidArgument(
                    "Firestore transactions require all reads to be executed before all writes.")
                state.failure = state.failure ?? failure
                throw failure
            }
        }
        guard let document = try await engine.lookUp([key]).first else {
            throw .internalError("The server did not answer for \(key.string).")
        }
        let version: ModelTimestamp
        switch document.kind {
        case .found: version = document.version
        case .missing: version = .none
        case .invalid, .unknown: throw .internalError("The server did not say whether \(key.string) exists.")
        }
        try state.with { (state) throws(Status) in
            if let before = state.versions[key], before != version {
                let failure = Status.aborted("Document version changed between two reads.")
                state.failure = state.failure ?? failure
                throw failure
            }
            state.versions[key] = version
        }
        return document
    }

    /// Adds the precondition to the mutation: the first write of a document that was read applies only to that version.
    func write(_ mutation: Mutation) throws(Status) {
        try state.with { (state) throws(Status) in
            if state.isCommitted {
                throw .failedPrecondition("A transaction object cannot be used after its update callback has been run.")
            }
            var mutation = mutation
            let version = state.written.contains(mutation.key) ? nil : state.versions[mutation.key]
            if mutation.precondition == .exists(true), version == ModelTimestamp.none {
                // An update of a missing document fails here with the server's error, before a request.
                state.failure =
                    state.failure
                    ?? .invalidArgument("Can't update a document that doesn't exist: \(mutation.key.string)")
            } else if let version {
                mutation.precondition = Self.precondition(version)
            }
            state.mutations.append(mutation)
            state.written.insert(mutation.key)
        }
    }

    private static func precondition(_ version: ModelTimestamp) -> Precondition {
        version == .none ? .exists(false) : .updateTime(version)
    }

    /// Commits the writes, and verifies the documents that were only read.
    func commit() async throws(Status) {
        let mutations = try state.with { (state) throws(Status) in
            state.isCommitted = true
            if let failure = state.failure { throw failure }
            let unwritten = state.versions.filter { !state.written.contains($0.key) }
            // Sorted by name, so that equal transactions make equal requests.
            return state.mutations
                + unwritten.sorted { $0.key.string < $1.key.string }.map { key, version in
                    Mutation(key: key, kind: .verify, precondition: Self.precondition(version))
                }
        }
        try await engine.commit(mutations)
    }

    /// Accepts no more writes: the closure failed.
    func close() { state.with { $0.isCommitted = true } }
}
