import HearthConcurrency
import HearthModel
import HearthDocuments

/// Open values by name: the databases of a server, or its namespaces.
///
/// Everything that waits for a disk (opening, recovery of the log, closing, deletion) runs on `LifecycleThreads`, by
/// one thread at a time for each name, and holds no lock that others need. Invariants:
///
/// - At most one value of a name exists, from the beginning of its opening to the end of its closing.
/// - A value that is closed because it is unused has no user: the registry has the only reference to it, and no work is
///   in progress. Both are checked under the lock that guards handing out references.
/// - Requests for a name that is being opened, closed or deleted wait, and are handled in order: a request after a
///   deletion gets a value that was opened after it.
///
/// `@unchecked Sendable`: the monitor guards all state, including the slots.
@usableFromInline package final class Registry<Name: Hashable & Sendable, Value: Registered>: @unchecked Sendable {
    @usableFromInline package typealias Completion = @Sendable (Result<Value, Status>) -> Void
    @usableFromInline package typealias Deletion = @Sendable (Result<Void, Status>) -> Void

    @usableFromInline enum Request {
        case use(Completion)
        case delete(because: Status, Deletion)
    }

    @usableFromInline final class Slot {
        @usableFromInline var value: Value?
        /// A thread works on the slot, or will: the value is not closed as unused, and requests wait.
        var isChanging = false
        @usableFromInline var requests: [Request] = []
        /// In monotonic nanoseconds.
        @usableFromInline var used: UInt64 = 0
    }

    @usableFromInline let monitor = Monitor()
    @usableFromInline var slots: [Name: Slot] = [:]
    private var isClosed = false
    @usableFromInline let clock: any Clock
    private let threads: LifecycleThreads
    private let openStores: OpenStores
    private let make: @Sendable (Name) throws(Status) -> Value
    private let remove: @Sendable (Name) throws(Status) -> Void

    package static var shutdown: Status { .unavailable("The server is shutting down.") }
    private static var idle: Status { .unavailable("The database is closed.") }

    /// - Parameters:
    ///   - openStores: the shared count of open stores; `open` takes a slot of it, the registry returns the slot.
    ///   - open: opens or prepares the value of a name. On one of the threads.
    ///   - remove: deletes the stored data of a name, which is closed. On one of the threads.
    package init(
        threads: LifecycleThreads, openStores: OpenStores, clock: any Clock,
        open: @escaping @Sendable (Name) throws(Status) -> Value,
        remove: @escaping @Sendable (Name) throws(Status) -> Void
    ) {
        self.threads = threads
        self.openStores = openStores
        self.clock = clock
        make = open
        self.remove = remove
        openStores.add(self)
    }

    // MARK: Use

    /// The open value of a name. The caller may use it while holding the reference. Inlinable, because every request
    /// looks for its database.
    @inlinable package func opened(_ name: Name) -> Value? {
        monitor.lock()
        defer { monitor.unlock() }
        guard let slot = slots[name], let value = slot.value, slot.requests.isEmpty else { return nil }
        slot.used = clock.monotonicNanoseconds()
        return value
    }

    /// Opens a value that is not open.
    /// - Parameter completion: called once: immediately and on this thread when the value is open, otherwise later from
    ///   another thread.
    package func use(_ name: Name, _ completion: @escaping Completion) {
        if let value = opened(name) { return completion(.success(value)) }
        add(.use(completion), to: name)
    }

    /// Like `use`, for threads that may wait; never on an event loop, a writer's thread or one of `threads`.
    package func wait(_ name: Name) throws(Status) -> Value {
        if let value = opened(name) { return value }
        let answer = Awaited<Value>()
        use(name) { answer.set($0) }
        return try answer.wait()
    }

    /// Closes the value of a name and deletes its data.
    /// - Parameter reason: the error for its current users.
    package func delete(_ name: Name, because reason: Status, _ completion: @escaping Deletion) {
        add(.delete(because: reason, completion), to: name)
    }

    private func add(_ request: Request, to name: Name) {
        monitor.lock()
        if isClosed {
            monitor.unlock()
            return Self.fail(request, Self.shutdown)
        }
        let slot = slots[name] ?? Slot()
        slots[name] = slot
        slot.requests.append(request)
        let isIdle = !slot.isChanging
        slot.isChanging = true
        monitor.unlock()
        if isIdle { threads.run { [self] in work(name) } }
    }

    private static func fail(_ request: Request, _ status: Status) {
        switch request {
        case .use(let completion): completion(.failure(status))
        case .delete(_, let completion): completion(.failure(status))
        }
    }

    /// All open values, used or not.
    package var values: [Value] { monitor.withLock { slots.values.compactMap(\.value) } }

    /// The names of open values that have a store.
    package var existingNames: [Name] {
        monitor.withLock { slots.filter { $0.value.value?.exists == true }.map(\.key) }
    }

    // MARK: Work on one name

    private enum Step {
        case hand(Value, [Completion])
        case open
        case delete(Value?, because: Status, Deletion)
        case end
    }

    /// Handles the requests for a name. Called by one thread at a time, which has set `isChanging`.
    private func work(_ name: Name) {
        while true {
            switch nextStep(name) {
            case .hand(let value, let completions): for completion in completions { completion(.success(value)) }
            case .open: open(name)
            case .delete(let value, let reason, let completion):
                close(value, because: reason)
                do throws(Status) {
                    try remove(name)
                    completion(.success(()))
                } catch { completion(.failure(error)) }
            case .end: return
            }
        }
    }

    private func nextStep(_ name: Name) -> Step {
        monitor.lock()
        defer { monitor.unlock() }
        guard let slot = slots[name] else { return .end }
        switch slot.requests.first {
        case .use:
            guard let value = slot.value else { return .open }
            slot.used = clock.monotonicNanoseconds()
            return .hand(value, Self.takeUses(slot))
        case .delete(let reason, let completion):
            slot.requests.removeFirst()
            defer { slot.value = nil }
            return .delete(slot.value, because: reason, completion)
        case nil:
            slot.isChanging = false
            if slot.value == nil { slots[name] = nil }
            monitor.signal()
            return .end
        }
    }

    /// The requests for the value up to the next deletion.
    private static func takeUses(_ slot: Slot) -> [Completion] {
        var uses: [Completion] = []
        while case .use(let completion)? = slot.requests.first {
            slot.requests.removeFirst()
            uses.append(completion)
        }
        return uses
    }

    private func open(_ name: Name) {
        do throws(Status) {
            let value = try make(name)
            monitor.withLock { slots[name]?.value = value }
            if !value.exists { openStores.noteDeferred() }
        } catch {
            let waiting = monitor.withLock { slots[name].map { Self.takeUses($0) } ?? [] }
            for completion in waiting { completion(.failure(error)) }
        }
    }

    private func close(_ value: Value?, because reason: Status) {
        guard let value else { return }
        value.close(because: reason)
        // Queued commits may have created the store.
        if value.exists { openStores.leave() }
    }

    // MARK: Closing unused values

    /// Unused values, the longest unused first.
    /// - Parameters:
    ///   - existing: values that have a store, or values that have none.
    ///   - before: skips values used later, in monotonic nanoseconds.
    package func unused(existing: Bool, before: UInt64, max: Int) -> [UnusedStore] {
        let found = monitor.withLock {
            slots.filter { _, slot in
                slot.used < before && isUnused(slot) && slot.value?.exists == existing
            }.map { (name: $0.key, used: $0.value.used) }
        }
        return found.sorted { $0.used < $1.used }.prefix(max).map { name, used in
            UnusedStore(used: used) { [self] in closeUnused(name) }
        }
    }

    /// Closes the value of a name if it still has no users. Waits for it: not on an event loop.
    private func closeUnused(_ name: Name) {
        monitor.lock()
        guard let slot = slots[name], isUnused(slot) else { return monitor.unlock() }
        let value = slot.value
        slot.value = nil
        slot.isChanging = true
        monitor.unlock()
        close(value, because: Self.idle)
        // Another caller may have requested it meanwhile.
        monitor.lock()
        let isWanted = !slot.requests.isEmpty
        if !isWanted {
            slots[name] = nil
            monitor.signal()
        }
        monitor.unlock()
        if isWanted { threads.run { [self] in work(name) } }
    }

    /// Whether a value has no users and no work in progress. The lock must be held: it prevents new references.
    private func isUnused(_ slot: Slot) -> Bool {
        guard !slot.isChanging, slot.requests.isEmpty, isKnownUniquelyReferenced(&slot.value) else { return false }
        return slot.value?.isBusy == false
    }

    // MARK: The end

    /// Fails new requests, waits for requests in progress, and closes all values, used or not.
    package func close() {
        monitor.lock()
        isClosed = true
        let waiting = slots.values.flatMap { slot in
            defer { slot.requests = [] }
            return slot.requests
        }
        monitor.unlock()
        for request in waiting { Self.fail(request, Self.shutdown) }
        monitor.lock()
        while slots.values.contains(where: \.isChanging) { monitor.wait() }
        let values = slots.values.compactMap(\.value)
        slots = [:]
        monitor.unlock()
        for value in values { close(value, because: Self.shutdown) }
    }
}

extension Registry: StoreHolder {}
