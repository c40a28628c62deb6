import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

/// Observing and reading.
///
/// An observer of a query receives the known data at once: that of the cache, of other observers, and of this program's
/// writes without an answer. The server's data follows, and then each change. Offline it receives the known data and
/// this program's own writes. `value` is delivered only when all data of the query is known: offline only if the cache,
/// another observer, or an own write of the whole location has it. `childAdded` is delivered for each child that is
/// known.
///
/// Blocks run on the database's `callbackQueue`, one after another, in the order of the changes. Releasing the
/// reference or query does not remove an observer. Observers are not stored: each run of the program adds its own.
extension DatabaseQuery {
    // MARK: Observers

    /// Observes the query until the observer is removed.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives each event, on `callbackQueue`, until the observer is removed.
    /// - Returns: the handle that `removeObserver(withHandle:)` takes.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void
    ) -> DatabaseHandle { observe(eventType, with: block, withCancel: nil) }

    /// Observes the query until the observer is removed or the server rejects it.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives each event, on `callbackQueue`, until the observer is removed.
    ///   - cancelBlock: runs once, on `callbackQueue`, when the observer ends because of an error: 1 of the domain
    ///     `com.firebase` when the rules deny reading, also later, after a change of the user or the rules; 2 when the
    ///     app was deleted before the call; 9999 for other reasons (see `Database`). nil ignores the error. It does not
    ///     run when the observer is removed, or when the app is deleted later.
    /// - Returns: the handle that `removeObserver(withHandle:)` takes.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle {
        observe(eventType, andPreviousSiblingKeyWith: { snapshot, _ in block(snapshot) }, withCancel: cancelBlock)
    }

    /// Observes the query until the observer is removed, with the positions of children.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives each event, on `callbackQueue`, until the observer is removed. Its second argument is the
    ///     key of the previous sibling in the query's order, nil for the first child, for `childRemoved` and for
    ///     `value`.
    /// - Returns: the handle that `removeObserver(withHandle:)` takes.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void
    ) -> DatabaseHandle { observe(eventType, andPreviousSiblingKeyWith: block, withCancel: nil) }

    /// Observes the query until the observer is removed or the server rejects it, with the positions of children.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives each event, on `callbackQueue`, until the observer is removed. Its second argument is the
    ///     key of the previous sibling in the query's order, nil for the first child, for `childRemoved` and for
    ///     `value`.
    ///   - cancelBlock: runs once, on `callbackQueue`, when the observer ends because of an error: 1 of the domain
    ///     `com.firebase` when the rules deny reading, also later, after a change of the user or the rules; 2 when the
    ///     app was deleted before the call; 9999 for other reasons (see `Database`). nil ignores the error. It does not
    ///     run when the observer is removed, or when the app is deleted later.
    /// - Returns: the handle that `removeObserver(withHandle:)` takes.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle { start(eventType, isSingle: false, block, cancelBlock) }

    /// Waits for one event and then removes the observer. Known data is delivered at once, even if the server has newer
    /// data; `getData` asks the server first. There is no timeout.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives the first event, on `callbackQueue`.
    public func observeSingleEvent(of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void) {
        observeSingleEvent(of: eventType, with: block, withCancel: nil)
    }

    /// Waits for one event, as `observeSingleEvent(of:with:)`, and reports when there will be none.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives the first event, on `callbackQueue`.
    ///   - cancelBlock: runs instead of `block`, on `callbackQueue`, when there will be no event: with the error 1 of
    ///     the domain `com.firebase` when the rules deny reading, 2 when the app is deleted, 9999 for other reasons
    ///     (see `Database`). nil ignores the error.
    public func observeSingleEvent(
        of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) {
        observeSingleEvent(
            of: eventType, andPreviousSiblingKeyWith: { snapshot, _ in block(snapshot) }, withCancel: cancelBlock)
    }

    /// Waits for one event, as `observeSingleEvent(of:with:)`, with the position of a child.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives the first event, on `callbackQueue`, with the key of the previous sibling in the query's
    ///     order; nil for the first child, for `childRemoved` and for `value`.
    public func observeSingleEvent(
        of eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void
    ) { observeSingleEvent(of: eventType, andPreviousSiblingKeyWith: block, withCancel: nil) }

    /// Waits for one event, as `observeSingleEvent(of:with:)`, with the position of a child, and reports when there
    /// will be none.
    /// - Parameters:
    ///   - eventType: the kind of events.
    ///   - block: receives the first event, on `callbackQueue`, with the key of the previous sibling in the query's
    ///     order; nil for the first child, for `childRemoved` and for `value`.
    ///   - cancelBlock: runs instead of `block`, on `callbackQueue`, when there will be no event: with the error 1 of
    ///     the domain `com.firebase` when the rules deny reading, 2 when the app is deleted, 9999 for other reasons
    ///     (see `Database`). nil ignores the error.
    public func observeSingleEvent(
        of eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) { _ = start(eventType, isSingle: true, block, cancelBlock) }

    /// Waits for one event, as Firebase's method, which cannot report an error either. Known data is returned at once;
    /// otherwise it waits for the server without a timeout, offline until the client is online again. `getData` asks
    /// the server first; use `observeSingleEvent(of:)` to get errors.
    /// - Parameter eventType: the kind of events.
    /// - Returns: the data, and the key of the previous sibling in the query's order; nil for the first child, for
    ///   `childRemoved` and for `value`. When the rules deny reading, the app is deleted, `removeAllObservers` is called
    ///   or the task is cancelled, a snapshot without data: Firebase's method never returns then. A refusal is logged as a
    ///   warning.
    nonisolated(nonsending) public func observeSingleEventAndPreviousSiblingKey(
        of eventType: DataEventType
    ) async -> (DataSnapshot, String?) {
        do { return try await single(eventType) } catch {
            if !(error is CancellationError) {
                Log.warning("observeSingleEventAndPreviousSiblingKey at \(ref.url): \(error.localizedDescription)")
            }
            return (DataSnapshot(.empty, at: base.path, of: base.database), nil)
        }
    }

    /// Not in Firebase's API: waits for one event. Known data is returned at once; otherwise it waits for the server
    /// without a timeout, offline until the client is online again. `getData` asks the server first.
    /// - Parameter eventType: the kind of events.
    /// - Returns: the data.
    /// - Throws: an `NSError` of the domain `com.firebase`: 1 when the rules deny reading, 2 when the app is deleted,
    ///   9999 after `removeAllObservers` and for other reasons (see `Database`). `CancellationError` when the task is
    ///   cancelled.
    nonisolated(nonsending) public func observeSingleEvent(of eventType: DataEventType) async throws -> DataSnapshot {
        try await single(eventType).0
    }

    nonisolated(nonsending) private func single(_ eventType: DataEventType) async throws -> (DataSnapshot, String?) {
        try await answer(stoppable: { completion in
            let handle = start(
                eventType, isSingle: true, callbacks: .none, { completion(.success($0)) },
                { completion(.failure($0.error)) })
            return { [self] in removeObserver(withHandle: handle) }
        })
    }

    private func start(
        _ eventType: DataEventType, isSingle: Bool, _ block: @escaping (DataSnapshot, String?) -> Void,
        _ cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle {
        let block = Carried(block)
        let cancelBlock = cancelBlock.map { Carried($0) }
        return start(
            eventType, isSingle: isSingle, callbacks: .users, { block.value($0.0, $0.1) },
            { failure in cancelBlock?.value(failure.error) })
    }

    /// - Parameter callbacks: `async` calls do not use the user's queue.
    @discardableResult
    private func start(
        _ eventType: DataEventType, isSingle: Bool, callbacks: Repository.CallbackTarget,
        _ onEvent: @escaping @Sendable ((DataSnapshot, String?)) -> Void,
        _ onCancel: (@Sendable (WireFailure) -> Void)?
    ) -> DatabaseHandle {
        let (database, path) = base
        return repository.observe(
            spec.query, at: path, kinds: eventType.kinds, isSingle: isSingle, callbacks: callbacks,
            onEvent: { event in
                let snapshot = DataSnapshot(event.node, at: event.path, orderedBy: event.query, of: database)
                onEvent((snapshot, event.previousKey?.string))
            }, onCancel: { failure in onCancel?(failure) })
    }

    /// Removes an observer. Call it on the query that has the observer, or on a reference to its location; on any other
    /// it has no effect. No further event is delivered, not even a pending one.
    /// - Parameter handle: the handle that `observe` returned.
    public func removeObserver(withHandle handle: DatabaseHandle) {
        repository.remove(handle, of: spec.query, at: base.path)
    }

    /// Removes the observers of this query; on a reference, of all queries at the location. Observers of locations
    /// below are unchanged. No further event is delivered, not even a pending one.
    public func removeAllObservers() { repository.removeAll(of: spec.query, at: base.path) }

    /// Keeps the data of the query current without an observer, so that it is available offline, and so that the cache
    /// does not delete it. It lasts until the program ends, the server rejects it, or it is ended by false: each run of
    /// the program calls it again. A query below `.info` ends the program.
    /// - Parameter keepSynced: true to begin, false to end.
    public func keepSynced(_ keepSynced: Bool) {
        let path = base.path
        orTrap { () throws(Status) in
            if path.first == .info {
                throw .invalidArgument("keepSynced() can't be called below .info: the client makes that itself.")
            }
        }
        let query = spec.query
        repository.perform { $0.keepSynced(keepSynced, query, at: path) }
    }

    // MARK: Reading once

    /// Reads the data once: the complete data of an observer of the query, or of a location at or above it, or else
    /// that of the server.
    ///
    /// When the server cannot be reached within 3 seconds, loses the connection or rejects the read, it reads the known
    /// data: the cache on disk with this program's writes without an answer. It fails when the known data is not
    /// complete or is empty. The server's answer is stored in the cache.
    /// - Parameter block: runs once, on `callbackQueue`. It receives nil and the data, or an `NSError` of the domain
    ///   `com.firebase.core` with the code 1 and no data. The failure reason is the server's message, or says that the
    ///   client is offline.
    public func getData(completion block: @escaping ((any Error)?, DataSnapshot?) -> Void) {
        let block = Carried(block)
        get { [repository] result in
            repository.deliver {
                switch result {
                case .success(let snapshot): block.value(nil, snapshot)
                case .failure(let error): block.value(error, nil)
                }
            }
        }
    }

    /// Reads the data once, as `getData(completion:)`.
    /// - Returns: the data. Where the server has none, `exists()` is false.
    /// - Throws: an `NSError` of the domain `com.firebase.core` with the code 1 when there is neither an answer of the
    ///   server nor known data. `CancellationError` when the task is cancelled.
    nonisolated(nonsending) public func getData() async throws -> DataSnapshot {
        try await answer { get($0) }
    }

    private func get(_ completion: @escaping @Sendable (Result<DataSnapshot, any Error>) -> Void) {
        let (database, path) = base
        let query = spec.query
        let fail: @Sendable (WireFailure) -> Void = { completion(.failure($0.readError(of: path.description))) }
        repository.perform(
            { engine in
                engine.get(query, at: path) { result in
                    switch result {
                    case .success(let node):
                        completion(.success(DataSnapshot(node, at: path, orderedBy: query, of: database)))
                    case .failure(let failure): fail(failure)
                    }
                }
            }, otherwise: fail)
    }
}
