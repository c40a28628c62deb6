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

    let id: Int32
    let kind: Kind
    let once: Bool
    let projection: Projection?
    unowned let stream: ListenStream
    /// Commits up to this version are in what was sent; no commit counts before that was begun.
    var since = Int64.max
    /// Of a query with a limit or an offset: the documents that the client has, with their update versions.
    var window: [[UInt8]: Int64] = [:]

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

    var scopes: [WatchScope] {
        switch kind {
        case .query(let shared): [shared.live.scope]
        case .documents(let keys): keys.map { .document($0) }
        }
    }
}
