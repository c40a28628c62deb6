import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

extension DatabaseQuery {
    // MARK: Observers

    /// - Parameter block: runs on the database's `callbackQueue` until the observer is removed. Releasing the
    ///   reference does not remove the observer.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void
    ) -> DatabaseHandle { observe(eventType, with: block, withCancel: nil) }

    /// - Parameter cancelBlock: runs once when the server rejects the listen; the observer is removed then.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle {
        observe(eventType, andPreviousSiblingKeyWith: { snapshot, _ in block(snapshot) }, withCancel: cancelBlock)
    }

    /// - Parameter block: its second argument is the key of the previous sibling, nil for the first child and for
    ///   `value`.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void
    ) -> DatabaseHandle { observe(eventType, andPreviousSiblingKeyWith: block, withCancel: nil) }

    @discardableResult
    public func observe(
        _ eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle { start(eventType, isSingle: false, block, cancelBlock) }

    public func observeSingleEvent(of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void) {
        observeSingleEvent(of: eventType, with: block, withCancel: nil)
    }

    public func observeSingleEvent(
        of eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) {
        observeSingleEvent(
            of: eventType, andPreviousSiblingKeyWith: { snapshot, _ in block(snapshot) }, withCancel: cancelBlock)
    }

    public func observeSingleEvent(
        of eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void
    ) { observeSingleEvent(of: eventType, andPreviousSiblingKeyWith: block, withCancel: nil) }

    public func observeSingleEvent(
        of eventType: DataEventType, andPreviousSiblingKeyWith block: @escaping (DataSnapshot, String?) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) { _ = start(eventType, isSingle: true, block, cancelBlock) }

    /// Waits for the event without a timeout; compare `getData`. Unlike Firebase's method it throws, so that it
    /// always returns.
    /// - Throws: the server's error; an error when the app is deleted; `CancellationError`.
    nonisolated(nonsending) public func observeSingleEventAndPreviousSiblingKey(
        of eventType: DataEventType
    ) async throws -> (DataSnapshot, String?) {
        try await answer(stoppable: { completion in
            let handle = start(
                eventType, isSingle: true, callbacks: .none, { completion(.success($0)) },
                { completion(.failure($0.error)) })
            return { [self] in removeObserver(withHandle: handle) }
        })
    }

    /// Not in Firebase's API. Waits and throws as `observeSingleEventAndPreviousSiblingKey` does.
    nonisolated(nonsending) public func observeSingleEvent(of eventType: DataEventType) async throws -> DataSnapshot {
        try await observeSingleEventAndPreviousSiblingKey(of: eventType).0
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

    /// Removes an observer. Call it on the query that has the observer, or on the reference of its location. No
    /// further event is delivered, not even a pending one.
    public func removeObserver(withHandle handle: DatabaseHandle) {
        repository.remove(handle, of: spec.query, at: base.path)
    }

    /// Removes the observers of this query; on a reference, of all queries at the location. Observers of locations
    /// below stay.
    public func removeAllObservers() { repository.removeAll(of: spec.query, at: base.path) }

    /// Keeps the data current without an observer, so that it is available offline.
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

    /// Reads from the server, unless an observer keeps the data current. Without an answer it reads from the cache
    /// on disk.
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
