import HearthApp

extension Database {
    /// The sequence of the number of writes that the server has not answered: the present number, and the number after
    /// each change. 0 means that everything is saved at the server.
    ///
    /// It counts sets, updates and transactions, and with `isPersistenceEnabled` also those of an earlier run of the
    /// program. Operations for the disconnect are not counted. Each iterator observes until it is released or its task
    /// is cancelled. A slow consumer receives the newest number and misses those in between. The sequence ends when the
    /// app is deleted, and throws an `NSError` of the domain `com.firebase` when the database could not start.
    public var pendingWriteCounts: PendingWriteCountsSequence { PendingWriteCountsSequence(self) }

    /// The sequence of the number of unanswered writes: see `Database.pendingWriteCounts`.
    public struct PendingWriteCountsSequence: AsyncSequence, Sendable {
        public typealias Element = Int
        public typealias Failure = any Error

        private let database: Database

        /// The sequence of the number of unanswered writes.
        /// - Parameter database: the database that each iterator observes.
        public init(_ database: Database) { self.database = database }

        /// The iterator, which observes as long as it exists.
        public struct AsyncIterator: AsyncIteratorProtocol {
            public typealias Element = Int
            public typealias Failure = any Error

            private var iterator: AsyncThrowingStream<Int, any Error>.Iterator

            fileprivate init(_ iterator: AsyncThrowingStream<Int, any Error>.Iterator) { self.iterator = iterator }

            /// The newest number that was not returned yet, 0 or more; waits for it when there is none.
            /// - Returns: nil when the app was deleted or the task was cancelled.
            /// - Throws: an `NSError` of the domain `com.firebase` and the code 9999 with the reason why the database
            ///   could not start, for example when another process uses its cache. Cancellation throws nothing: the
            ///   sequence ends.
            public mutating func next() async throws -> Int? { try await iterator.next() }
        }

        /// Starts to observe.
        /// - Returns: an iterator, which observes until it is released.
        public func makeAsyncIterator() -> AsyncIterator {
            let (stream, continuation) = AsyncThrowingStream<Int, any Error>
                .makeStream(bufferingPolicy: .bufferingNewest(1))
            let stop = database.repository.observePendingWrites(
                onCount: { continuation.yield($0) },
                onEnd: { continuation.finish(throwing: $0 == .closed ? nil : $0.error) })
            continuation.onTermination = { _ in stop() }
            return AsyncIterator(stream.makeAsyncIterator())
        }
    }
}

@available(*, unavailable)
extension Database.PendingWriteCountsSequence.AsyncIterator: Sendable {}
