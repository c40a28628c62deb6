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

    /// The subject of a target: equal for targets that show the same.
    enum Subject: Hashable {
        case query(ByteDigest)
        case documents([[UInt8]])
    }

    let id: Int32
    let kind: Kind
    let once: Bool
    let projection: Projection?
    /// Nil after its end: tables and commits that are being matched may have the target for longer.
    private(set) weak var stream: ListenStream?
    /// Commits up to this version are included in what was sent; commits before the load began do not count.
    var since = Int64.max
    /// Keys of the documents that decide whether the client may see the target.
    var dependencies: [[UInt8]] = []
    /// One of these documents changed while the target was being loaded.
    var isToBeJudged = false
    /// A worker judges it again.
    var isAtWorker = false
    /// It waits for another judgement.
    var isToBeJudgedAgain = false
    /// The client's version of the window, for a query with a limit or an offset; nil before it was loaded.
    var window: ListenWindow?
    /// Memory that the server holds for the target, except for its query, which other targets may share.
    private let held: MemoryReservation
    private let kindBytes: Int
    private var dependencyBytes = 0

    // Measured with targets of 1,000 documents.
    private static let ownBytes = 1 << 10
    private static let keyBytes = 320

    static let noMemory = Status.resourceExhausted(
        "Listeners' targets take as much memory as the server has for them. Remove some, or try again later.")

    /// - Parameter held: nothing yet.
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

    /// Reserves memory for the documents on which it depends.
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

    /// The cost of judging it, in judgements.
    var judgementCount: Int {
        switch kind {
        case .query: 1
        case .documents(let keys): max(1, keys.count)
        }
    }
}
