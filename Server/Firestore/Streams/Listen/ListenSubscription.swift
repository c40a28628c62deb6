import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthWire

/// What one target of a Listen stream watches. `@unchecked Sendable`: belongs to the stream's loop.
final class ListenSubscription: @unchecked Sendable {
    enum Kind {
        case query(SharedQuery)
        /// Keys of documents, each once.
        case documents([[UInt8]])
    }

    /// What it shows, equal for targets that show the same.
    enum Subject: Hashable {
        case query(ByteDigest)
        case documents([[UInt8]])
    }

    let id: Int32
    let kind: Kind
    let once: Bool
    let projection: Projection?
    unowned let stream: ListenStream
    /// Commits up to this version are in what was sent; no commit counts before that was begun.
    var since = Int64.max
    /// Documents on which it depends that the client may see the target, by key.
    var dependencies: [[UInt8]] = []
    /// Something of that kind has changed while the target was being loaded.
    var isToBeJudged = false
    /// A worker asks rules about it, again.
    var isAtWorker = false
    /// It waits to be judged again.
    var isToBeJudgedAgain = false
    /// Of a query with a limit or an offset: what the client has; nil before it was loaded.
    var window: ListenWindow?
    /// What the server holds for the target, but for a query, which others may share.
    private let held: MemoryReservation
    private let kindBytes: Int
    private var dependencyBytes = 0

    // As measured with targets of 1,000 documents.
    private static let ownBytes = 1 << 10
    private static let keyBytes = 320

    static let noMemory = Status.resourceExhausted(
        "Listeners' targets take as much memory as the server has for them. Remove some, or try again later.")

    /// - Parameter held: nothing so far.
    /// - Throws: `noMemory`.
    init(id: Int32, kind: Kind, once: Bool, stream: ListenStream, _ held: MemoryReservation) throws(Status) {
        self.id = id
        self.kind = kind
        self.once = once
        self.stream = stream
        self.held = held
        switch kind {
        case .query(let shared):
            projection = shared.live.query.query.projection.map { Projection($0) }
            kindBytes = Self.ownBytes
        case .documents(let keys):
            projection = nil
            kindBytes = Self.ownBytes + Self.size(of: keys)
        }
        try hold()
    }

    private static func size(of keys: [[UInt8]]) -> Int { keys.reduce(0) { $0 + $1.count + keyBytes } }

    /// - Throws: `noMemory`.
    private func hold() throws(Status) {
        if !held.resize(to: kindBytes + dependencyBytes) { throw Self.noMemory }
    }

    /// Makes room for documents on which it will depend.
    /// - Throws: `noMemory`; then nothing has changed.
    func hold(dependencies: [[UInt8]]) throws(Status) {
        let before = dependencyBytes
        dependencyBytes = Self.size(of: dependencies)
        do throws(Status) {
            try hold()
        } catch {
            dependencyBytes = before
            throw error
        }
    }

    var subject: Subject {
        switch kind {
        case .query(let shared): .query(shared.digest)
        case .documents(let keys): .documents(keys)
        }
    }

    var scopes: [WatchScope] {
        switch kind {
        case .query(let shared): [shared.live.scope]
        case .documents(let keys): keys.map { .document($0) }
        }
    }

    /// What judging it costs, in judgements.
    var judgementCount: Int {
        switch kind {
        case .query: 1
        case .documents(let keys): max(1, keys.count)
        }
    }
}
