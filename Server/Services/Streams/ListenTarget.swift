import HearthModel
import HearthStorage
import HearthWire

/// What one target of a Listen stream watches. `@unchecked Sendable`: belongs to the stream's loop.
final class ListenTarget: @unchecked Sendable {
    enum Kind {
        case query(LiveQuery)
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
        if case .query(let live) = kind {
            projection = live.query.query.projection.map { Projection($0) }
        } else {
            projection = nil
        }
    }

    var scopes: [WatchScope] {
        switch kind {
        case .query(let live): [live.scope]
        case .documents(let keys): keys.map { .document($0) }
        }
    }

    /// Notes what a commit did to a document in the target's scope.
    /// - Returns: whether it concerns the target.
    func take(_ change: Change, at version: Int64) throws(Status) -> Bool {
        guard version > since else { return false }
        switch kind {
        case .documents:
            stream.note(change.key, self, was: change.before != nil, now: change.after != nil, change.after)
            return true
        case .query(let live):
            let was = try live.matches(change.before, key: change.key)
            let now = try live.matches(change.after, key: change.key)
            guard was || now else { return false }
            if live.isWindow {
                stream.noteWindow(self)
            } else {
                stream.note(change.key, self, was: was, now: now, change.after)
            }
            return true
        }
    }
}
