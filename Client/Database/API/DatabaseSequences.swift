import HearthTree

extension DatabaseQuery {
    /// The sequence of the query's data: the present data, and the data after each change, local writes included.
    ///
    /// Each iterator observes until it is released or its task is cancelled. A consumer that is slower than the changes
    /// receives the newest data and misses the data in between, so at most one snapshot waits. The sequence ends when
    /// the app is deleted and after `removeAllObservers`. It throws an `NSError` of the domain `com.firebase` when the
    /// server rejects the listen.
    public var snapshots: DatabaseQuerySnapshotsSequence { DatabaseQuerySnapshotsSequence(self) }

    /// The sequence of the changes of the query's children, in the order of the changes. It begins with `childAdded`
    /// for each child that exists. A list that applies the events one after the other has the order of the query.
    ///
    /// Each iterator observes until it is released or its task is cancelled. For a consumer that is slower than the
    /// changes, successive changes of the data of one child become one event with the newest data. All other events
    /// wait, because each position depends on those before it; beyond 1,048,576 waiting events the sequence throws. The
    /// sequence ends when the app is deleted and after `removeAllObservers`. It throws an `NSError` of the domain
    /// `com.firebase` when the server rejects the listen.
    /// - Returns: a sequence that observes nothing until it is iterated.
    public func childEvents() -> DatabaseChildEventsSequence { DatabaseChildEventsSequence(self) }

    /// Observes for an iterator, without the user's queue.
    /// - Parameter onEnd: the error; nil when the app was deleted or the observer removed.
    /// - Returns: a closure that removes the observer.
    fileprivate func observe(
        _ kinds: EngineEventKinds, onEvent: @escaping @Sendable (EngineEvent) -> Void,
        onEnd: @escaping @Sendable ((any Error)?) -> Void
    ) -> @Sendable () -> Void {
        let path = base.path
        let query = spec.query
        let repository = repository
        let handle = repository.observe(
            query, at: path, kinds: kinds, callbacks: .none, endsWithDatabase: true, onEvent: onEvent,
            onCancel: { onEnd($0 == .closed || $0 == .removed ? nil : $0.error) })
        return { repository.remove(handle, of: query, at: path) }
    }

    /// The snapshot of an event.
    fileprivate func snapshot(_ event: EngineEvent) -> DataSnapshot {
        DataSnapshot(event.node, at: event.path, orderedBy: event.query, of: base.database)
    }
}

/// The sequence of a query's data: see `DatabaseQuery.snapshots`.
public struct DatabaseQuerySnapshotsSequence: AsyncSequence, Sendable {
    public typealias Element = DataSnapshot
    public typealias Failure = any Error

    private let query: DatabaseQuery

    /// The sequence of a query's data.
    /// - Parameter query: the query, or a reference, that each iterator observes.
    public init(_ query: DatabaseQuery) { self.query = query }

    /// The iterator, which observes as long as it exists.
    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = DataSnapshot
        public typealias Failure = any Error

        private var iterator: AsyncThrowingStream<DataSnapshot, any Error>.Iterator

        fileprivate init(_ iterator: AsyncThrowingStream<DataSnapshot, any Error>.Iterator) { self.iterator = iterator }

        /// The newest snapshot that was not returned yet; waits for it when there is none.
        /// - Returns: nil when the app was deleted, the task was cancelled, or `removeAllObservers` was called.
        /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules reject the listen, 9999 with the
        ///   server's reason otherwise. Cancellation throws nothing: the sequence ends.
        public mutating func next() async throws -> DataSnapshot? { try await iterator.next() }
    }

    /// Starts to observe.
    /// - Returns: an iterator, which observes until it is released.
    public func makeAsyncIterator() -> AsyncIterator {
        let (stream, continuation) = AsyncThrowingStream<DataSnapshot, any Error>
            .makeStream(bufferingPolicy: .bufferingNewest(1))
        let stop = query.observe(
            .value, onEvent: { [query] in continuation.yield(query.snapshot($0)) },
            onEnd: { continuation.finish(throwing: $0) })
        continuation.onTermination = { _ in stop() }
        return AsyncIterator(stream.makeAsyncIterator())
    }
}

@available(*, unavailable)
extension DatabaseQuerySnapshotsSequence.AsyncIterator: Sendable {}

/// The sequence of the changes of a query's children: see `DatabaseQuery.childEvents()`.
public struct DatabaseChildEventsSequence: AsyncSequence, Sendable {
    public typealias Element = DatabaseEvent
    public typealias Failure = any Error

    private let query: DatabaseQuery
    private let waitingMax: Int

    /// The sequence of the changes of a query's children.
    /// - Parameter query: the query, or a reference, that each iterator observes.
    public init(_ query: DatabaseQuery) { self.init(query, waitingMax: WaitingChildEvents.countMax) }

    /// - Parameter waitingMax: the number of events that may wait for the consumer.
    init(_ query: DatabaseQuery, waitingMax: Int) {
        self.query = query
        self.waitingMax = waitingMax
    }

    /// The iterator, which observes as long as it exists.
    public struct AsyncIterator: AsyncIteratorProtocol {
        public typealias Element = DatabaseEvent
        public typealias Failure = any Error

        private let query: DatabaseQuery
        private let waiting: WaitingChildEvents
        private var arrivals: AsyncThrowingStream<Void, any Error>.Iterator

        fileprivate init(
            _ query: DatabaseQuery, _ waiting: WaitingChildEvents,
            _ arrivals: AsyncThrowingStream<Void, any Error>.Iterator
        ) {
            self.query = query
            self.waiting = waiting
            self.arrivals = arrivals
        }

        /// Whether an event waits. For tests.
        var hasNext: Bool { waiting.count > 0 }

        /// The next event.
        /// - Returns: nil when the app was deleted, the task was cancelled, or `removeAllObservers` was called.
        /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules reject the listen, 9999 with the
        ///   reason otherwise, for example when more than 1,048,576 events wait. Cancellation throws nothing: the
        ///   sequence ends.
        public mutating func next() async throws -> DatabaseEvent? {
            while true {
                if !Task.isCancelled, let event = waiting.take() { return DatabaseEvent(event, of: query) }
                if try await arrivals.next() == nil {
                    // Events that arrived before the end come first.
                    return Task.isCancelled ? nil : waiting.take().map { DatabaseEvent($0, of: query) }
                }
            }
        }
    }

    /// Starts to observe.
    /// - Returns: an iterator, which observes until it is released.
    public func makeAsyncIterator() -> AsyncIterator {
        let waiting = WaitingChildEvents(countMax: waitingMax)
        // The stream only wakes the iterator; the events are in `waiting`.
        let (arrivals, continuation) = AsyncThrowingStream<Void, any Error>
            .makeStream(bufferingPolicy: .bufferingNewest(1))
        let stop = query.observe(
            [.child, .inListOrder],
            onEvent: { event in
                if waiting.add(event) {
                    continuation.yield()
                } else {
                    continuation.finish(throwing: WaitingChildEvents.tooMany.error)
                }
            }, onEnd: { continuation.finish(throwing: $0) })
        continuation.onTermination = { end in
            stop()
            // What arrived before an end is still delivered; a consumer that left needs nothing.
            if case .cancelled = end { waiting.clear() }
        }
        return AsyncIterator(query, waiting, arrivals.makeAsyncIterator())
    }
}

@available(*, unavailable)
extension DatabaseChildEventsSequence.AsyncIterator: Sendable {}

extension DatabaseEvent {
    fileprivate init(_ event: EngineEvent, of query: DatabaseQuery) {
        let snapshot = query.snapshot(event)
        let key = event.previousKey?.string
        self =
            switch event.kind {
            case .childAdded: .childAdded(snapshot, previousSiblingKey: key)
            case .childChanged: .childChanged(snapshot, previousSiblingKey: key)
            case .childRemoved: .childRemoved(snapshot)
            case .childMoved: .childMoved(snapshot, previousSiblingKey: key)
            case .value: preconditionFailure("the observer has child events only")
            }
    }
}
