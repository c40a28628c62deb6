internal import Foundation
internal import HearthModel

extension DocumentReference {
    /// The sequence of the document's snapshots. Each iterator listens until it is released or its task is cancelled.
    /// The sequence ends when the instance is terminated, and throws an `NSError` of `FirestoreErrorDomain` when the
    /// listening fails.
    public var snapshots: DocumentSnapshotsSequence { snapshots(includeMetadataChanges: false) }

    /// The sequence of snapshots.
    /// - Parameter includeMetadataChanges: whether changes of only the metadata produce a snapshot.
    /// - Returns: the sequence. Nothing is read before it is iterated.
    @discardableResult
    public func snapshots(includeMetadataChanges: Bool) -> DocumentSnapshotsSequence {
        DocumentSnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
    }

    /// The sequence of a document's snapshots.
    public struct DocumentSnapshotsSequence: AsyncSequence, Sendable {
        public typealias Element = DocumentSnapshot
        public typealias Failure = any Error

        private let document: DocumentReference
        private let includeMetadataChanges: Bool

        /// The sequence of a document's snapshots.
        /// - Parameters:
        ///   - document: the document to listen to.
        ///   - includeMetadataChanges: whether changes of only the metadata produce a snapshot.
        public init(_ document: DocumentReference, includeMetadataChanges: Bool) {
            self.document = document
            self.includeMetadataChanges = includeMetadataChanges
        }

        /// The iterator, which listens as long as it exists.
        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = DocumentSnapshot
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator) {
                self.iterator = iterator
            }

            /// Waits for the next snapshot. Snapshots that come meanwhile are kept, in their order.
            /// - Returns: the snapshot; nil when the instance was terminated or the task was cancelled.
            /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code when the listening fails.
            ///   Cancellation throws nothing: the sequence ends.
            public mutating func next() async throws -> DocumentSnapshot? { try await iterator.next() }
        }

        /// Starts to listen.
        /// - Returns: an iterator, which listens until it is released.
        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(
                SnapshotStream.make { [document, includeMetadataChanges] continuation in
                    let options = SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges)
                    return document.firestore.engine.listen(
                        to: document.documentQuery, options: options.model, onEnd: { continuation.finish() },
                        onEvent: { result in
                            SnapshotStream.yield(result.map { document.snapshot(of: $0) }, to: continuation)
                        })
                })
        }
    }
}

@available(*, unavailable)
extension DocumentReference.DocumentSnapshotsSequence.AsyncIterator: Sendable {}

extension Query {
    /// The sequence of the query's snapshots. Each iterator listens until it is released or its task is cancelled. The
    /// sequence ends when the instance is terminated, and throws an `NSError` of `FirestoreErrorDomain` when the
    /// listening fails.
    public var snapshots: QuerySnapshotsSequence { snapshots(includeMetadataChanges: false) }

    /// The sequence of snapshots.
    /// - Parameter includeMetadataChanges: whether changes of only the metadata produce a snapshot.
    /// - Returns: the sequence. Nothing is read before it is iterated.
    @discardableResult
    public func snapshots(includeMetadataChanges: Bool) -> QuerySnapshotsSequence {
        QuerySnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
    }

    /// The sequence of a query's snapshots.
    public struct QuerySnapshotsSequence: AsyncSequence, Sendable {
        public typealias Element = QuerySnapshot
        public typealias Failure = any Error

        private let query: Query
        private let includeMetadataChanges: Bool

        /// The sequence of a query's snapshots.
        /// - Parameters:
        ///   - query: the query to listen to.
        ///   - includeMetadataChanges: whether changes of only the metadata produce a snapshot.
        public init(_ query: Query, includeMetadataChanges: Bool) {
            self.query = query
            self.includeMetadataChanges = includeMetadataChanges
        }

        /// The iterator, which listens as long as it exists.
        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = QuerySnapshot
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator) {
                self.iterator = iterator
            }

            /// Waits for the next snapshot. Snapshots that come meanwhile are kept, in their order.
            /// - Returns: the snapshot; nil when the instance was terminated or the task was cancelled.
            /// - Throws: an `NSError` of `FirestoreErrorDomain` with the server's code when the listening fails.
            ///   Cancellation throws nothing: the sequence ends.
            public mutating func next() async throws -> QuerySnapshot? { try await iterator.next() }
        }

        /// Starts to listen.
        /// - Returns: an iterator, which listens until it is released.
        public func makeAsyncIterator() -> AsyncIterator {
            orTrap(query.validateForRun)
            return AsyncIterator(
                SnapshotStream.make { [query, includeMetadataChanges] continuation in
                    let options = SnapshotListenOptions().withIncludeMetadataChanges(includeMetadataChanges)
                    return query.firestore.engine.listen(
                        to: query.model, options: options.model, onEnd: { continuation.finish() },
                        onEvent: { result in
                            SnapshotStream.yield(result.map { QuerySnapshot(query: query, view: $0) }, to: continuation)
                        })
                })
        }
    }
}

@available(*, unavailable)
extension Query.QuerySnapshotsSequence.AsyncIterator: Sendable {}

/// A listener as a stream. The stream has no limit: each snapshot has the changes since the previous one, so none may
/// be dropped.
private enum SnapshotStream {
    typealias Continuation<Snapshot> = AsyncThrowingStream<Snapshot, any Error>.Continuation

    static func make<Snapshot>(
        _ listen: (Continuation<Snapshot>) -> EngineListener
    ) -> AsyncThrowingStream<Snapshot, any Error>.Iterator {
        let (stream, continuation) = AsyncThrowingStream<Snapshot, any Error>.makeStream()
        let listener = listen(continuation)
        continuation.onTermination = { _ in listener.remove() }
        return stream.makeAsyncIterator()
    }

    static func yield<Snapshot: Sendable>(_ result: Result<Snapshot, Status>, to continuation: Continuation<Snapshot>) {
        switch result {
        case .success(let snapshot): continuation.yield(snapshot)
        case .failure(let status): continuation.finish(throwing: status.nsError)
        }
    }
}
