import HearthModel
import HearthStorage
import HearthWire

/// What one target of a Listen stream watches. `@unchecked Sendable`: belongs to the stream's loop.
final class ListenTarget: @unchecked Sendable {
    enum Kind {
        case query(SharedQuery)
        /// Keys of documents, each once.
        case documents([[UInt8]])
    }

    /// What it shows, equal for targets that show the same.
    enum Subject: Hashable {
        case query([UInt8])
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
    /// It waits to be judged again.
    var isToBeJudgedAgain = false
    /// Of a query with a limit or an offset: what the client has; nil before it was loaded.
    var window: ListenWindow?

    init(id: Int32, kind: Kind, once: Bool, stream: ListenStream) {
        self.id = id
        self.kind = kind
        self.once = once
        self.stream = stream
        if case .query(let shared) = kind {
            projection = shared.live.query.query.projection.map { Projection($0) }
        } else {
            projection = nil
        }
    }

    var subject: Subject {
        switch kind {
        case .query(let shared): .query(shared.text)
        case .documents(let keys): .documents(keys)
        }
    }

    var scopes: [WatchScope] {
        switch kind {
        case .query(let shared): [shared.live.scope]
        case .documents(let keys): keys.map { .document($0) }
        }
    }
}
