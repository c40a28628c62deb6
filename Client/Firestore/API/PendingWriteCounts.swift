internal import HearthModel

extension Firestore {
    /// The sequence of the number of writes that the server has not answered: the present number, and the number after
    /// each change. 0 means that everything is saved at the server. A batch counts as one write.
    ///
    /// It counts the present user's writes, and with a cache on disk also those of an earlier run of the program; a
    /// transaction is not counted. Each iterator observes until it is released or its task is cancelled. A slow
    /// consumer receives the newest number and misses those in between. The sequence ends when the instance is
    /// terminated, and throws an `NSError` of `FirestoreErrorDomain` when the cache fails. Apple's library has no such
    /// property.
    public var pendingWriteCounts: PendingWriteCountsSequence { PendingWriteCountsSequence(self) }

    /// The sequence of the number of unanswered writes: see `Firestore.pendingWriteCounts`.
    public struct PendingWriteCountsSequence: AsyncSequence, Sendable {
        public typealias Element = Int
        public typealias Failure = any Error

        private let firestore: Firestore

        /// The sequence of the number of unanswered writes.
        /// - Parameter firestore: the instance that each iterator observes.
        public init(_ firestore: Firestore) { self.firestore = firestore }

        /// The iterator, which observes as long as it exists.
        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = Int
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<Int, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<Int, any Error>.Iterator) { self.iterator = iterator }

            /// The newest number that was not returned yet, 0 or more; waits for it when there is none.
            /// - Returns: nil when the instance was terminated or the task was cancelled.
            /// - Throws: an `NSError` of `FirestoreErrorDomain` when the cache fails, for example
            ///   `failedPrecondition` when another process uses it. Cancellation throws nothing: the sequence ends.
            public mutating func next() async throws -> Int? { try await iterator.next() }
        }

        /// Starts to observe. After `terminate` it ends the program, as every use of the instance does.
        /// - Returns: an iterator, which observes until it is released.
        public func makeAsyncIterator() -> AsyncIterator {
            let (stream, continuation) = AsyncThrowingStream<Int, any Error>
                .makeStream(bufferingPolicy: .bufferingNewest(1))
            let listener = firestore.engine.observePendingWrites(
                onCount: { continuation.yield($0) }, onEnd: { continuation.finish(throwing: $0?.nsError) })
            continuation.onTermination = { _ in listener.remove() }
            return AsyncIterator(stream.makeAsyncIterator())
        }
    }
}

@available(*, unavailable)
extension Firestore.PendingWriteCountsSequence.AsyncIterator: Sendable {}
