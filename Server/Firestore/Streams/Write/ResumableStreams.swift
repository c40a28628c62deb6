import HearthModel
import Synchronization

/// Assigns each resumable stream to one connection at a time. A connection that resumes a stream waits until the commit
/// on the former connection is made or has failed, so that this commit is not made later.
///
/// At most one connection waits for each stream: the client no longer uses an earlier waiting one.
final class ResumableStreams: Sendable {
    private struct Waiting {
        var stream: WriteStream
        var granted: @Sendable () -> Void
        var refused: @Sendable () -> Void
    }

    private struct Held {
        weak var holder: WriteStream?
        var next: Waiting?
    }

    private let held = Mutex<[ResumableStream.Key: Held]>([:])

    var count: Int { held.withLock { $0.count } }

    /// - Parameters:
    ///   - granted: called when no other connection has the stream; on any thread, maybe immediately.
    ///   - refused: called instead when another connection resumes the stream meanwhile.
    func hold(
        _ key: ResumableStream.Key, _ stream: WriteStream, granted: @escaping @Sendable () -> Void,
        refused: @escaping @Sendable () -> Void
    ) {
        let (holder, replaced): (WriteStream?, Waiting?) = held.withLock { held in
            let replaced = held[key]?.next
            guard let holder = held[key]?.holder else {
                held[key] = Held(holder: stream)
                return (nil, replaced)
            }
            held[key]?.next = Waiting(stream: stream, granted: granted, refused: refused)
            return (holder, replaced)
        }
        replaced?.refused()
        if let holder { holder.yieldStream(key) } else { granted() }
    }

    /// The connection releases the stream, or stops waiting for it. Does nothing when it does neither.
    func release(_ key: ResumableStream.Key, _ stream: WriteStream) {
        let next: Waiting? = held.withLock { held in
            if held[key]?.next?.stream === stream { held[key]?.next = nil }
            guard held[key]?.holder === stream else { return nil }
            let next = held[key]?.next
            held[key] = next.map { Held(holder: $0.stream) }
            return next
        }
        next?.granted()
    }
}
