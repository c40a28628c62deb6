import Foundation
import HearthApp
import HearthConcurrency
import HearthModel
import HearthTree

extension DatabaseQuery {
    // MARK: Observers

    /// - Parameter block: runs on the database's `callbackQueue` until the observer is removed; letting the reference go
    ///   doesn't remove it.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void
    ) -> DatabaseHandle { observe(eventType, with: block, withCancel: nil) }

    /// - Parameter cancelBlock: runs once when the server refuses; the observer is gone then.
    @discardableResult
    public func observe(
        _ eventType: DataEventType, with block: @escaping (DataSnapshot) -> Void,
        withCancel cancelBlock: ((any Error) -> Void)?
    ) -> DatabaseHandle {
        observe(eventType, andPreviousSiblingKeyWith: { snapshot, _ in block(snapshot) }, withCancel: cancelBlock)
    }

    /// - Parameter block: its second argument is the key of the child in front, nil for the first and for `value`.
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

    /// Waits for the event, however long that takes: see `getData`. Unlike Apple's it throws, and so returns whatever happens.
    /// - Throws: what the server refuses with; that the app was deleted; `CancellationError`.
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

    /// Ours. Waits and throws as `observeSingleEventAndPreviousSiblingKey` does.
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

    /// - Parameter callbacks: `async` calls need no queue of the user's.
    @discardableResult
    private func start(
        _ eventType: DataEventType, isSingle: Bool, callbacks: Repository.CallbackPlace,
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

    /// On the query that the observer is of, or on its place's reference. No event comes any more, not even one on its way.
    public func removeObserver(withHandle handle: DatabaseHandle) {
        repository.remove(handle, of: spec.query, at: base.path)
    }

    /// Of this query; on a reference of all queries of the place. Those of places below stay.
    public func removeAllObservers() { repository.removeAll(of: spec.query, at: base.path) }

    /// Keeps the data current without an observer, so that it is there when it is asked for offline.
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

    /// Asks the server, unless an observer keeps the data current; when there is no answer, what the cache on the disk has.
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
