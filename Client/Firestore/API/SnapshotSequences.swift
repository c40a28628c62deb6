internal import Foundation
internal import HearthModel

extension DocumentReference {
    /// The document's snapshots as they come. Listening begins with the iterator, and ends when the iterator goes or the
    /// task is cancelled. The sequence ends when the instance is terminated.
    public var snapshots: DocumentSnapshotsSequence { snapshots(includeMetadataChanges: false) }

    @discardableResult
    public func snapshots(includeMetadataChanges: Bool) -> DocumentSnapshotsSequence {
        DocumentSnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
    }

    public struct DocumentSnapshotsSequence: AsyncSequence, Sendable {
        public typealias Element = DocumentSnapshot
        public typealias Failure = any Error

        private let document: DocumentReference
        private let includeMetadataChanges: Bool

        public init(_ document: DocumentReference, includeMetadataChanges: Bool) {
            self.document = document
            self.includeMetadataChanges = includeMetadataChanges
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = DocumentSnapshot
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<DocumentSnapshot, any Error>.Iterator) {
                self.iterator = iterator
            }

            public mutating func next() async throws -> DocumentSnapshot? { try await iterator.next() }
        }

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
    /// The query's snapshots as they come. Listening begins with the iterator, and ends when the iterator goes or the task
    /// is cancelled. The sequence ends when the instance is terminated.
    public var snapshots: QuerySnapshotsSequence { snapshots(includeMetadataChanges: false) }

    @discardableResult
    public func snapshots(includeMetadataChanges: Bool) -> QuerySnapshotsSequence {
        QuerySnapshotsSequence(self, includeMetadataChanges: includeMetadataChanges)
    }

    public struct QuerySnapshotsSequence: AsyncSequence, Sendable {
        public typealias Element = QuerySnapshot
        public typealias Failure = any Error

        private let query: Query
        private let includeMetadataChanges: Bool

        public init(_ query: Query, includeMetadataChanges: Bool) {
            self.query = query
            self.includeMetadataChanges = includeMetadataChanges
        }

        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = QuerySnapshot
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<QuerySnapshot, any Error>.Iterator) {
                self.iterator = iterator
            }

            public mutating func next() async throws -> QuerySnapshot? { try await iterator.next() }
        }

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

/// A listener as a stream. It has no bound: each snapshot tells the changes since the one before, so none may be dropped.
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
