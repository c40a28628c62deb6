import HearthConcurrency
import HearthModel
import HearthTree

/// Writes that are computed or checked beside the writer.
struct UndecidedTreeWrites: Sendable {
    private var lastTicket: UInt64 = 0
    fileprivate var requests: [UInt64: TreeRequest] = [:]

    fileprivate var comparing = FairQueue<UInt64>()
    /// The present number of comparisons.
    fileprivate var comparisons = 0

    fileprivate var replacing = FairQueue<UInt64>()
    /// The one large write that is being made.
    fileprivate var replaced: UInt64?
    /// Its records that are made beside the tree at present. Only the writer's thread changes it.
    var wide: WideUpdate?
    /// Whether some work of the previous large write is left.
    fileprivate var isSettling: Bool
    /// Whether a slice of that is queued.
    fileprivate var isSettleQueued: Bool
    private var lastID: UInt32 = 0

    init(isSettling: Bool) {
        self.isSettling = isSettling
        isSettleQueued = isSettling
    }

    var isReplacing: Bool { replaced != nil || isSettling || !replacing.isEmpty }

    mutating func nextTicket() -> UInt64 {
        lastTicket += 1
        return lastTicket
    }

    /// Identifies the staged records. No others are staged at that time, and no graft exists.
    fileprivate mutating func nextID() -> UInt32 {
        lastID &+= 1
        return lastID
    }

    mutating func removeAll() -> [TreeRequest] {
        defer {
            requests = [:]
            comparing = FairQueue()
            replacing = FairQueue()
        }
        return Array(requests.values)
    }
}

extension TreeWriter {
    /// Answers a write, and releases its connection if that has waited for it.
    func decide(_ request: TreeRequest, _ outcome: TreeOutcome) {
        if request.attempts > 0 {
            shared.withLock { $0.queue.release(request.requester) }
            leave(request)
        }
        answer(request, outcome)
    }

    /// Returns an undecided write to the writer's thread.
    private func resume(_ request: TreeRequest) {
        let isQueued = shared.withLock { shared in
            // Otherwise it was answered when the database was closed.
            if shared.undecided.requests.removeValue(forKey: request.ticket) == nil { return false }
            shared.queue.resume(.write(request), for: request.requester, cost: request.cost)
            return true
        }
        if isQueued { wake() }
    }

    private func undecided(_ ticket: UInt64) -> TreeRequest? {
        shared.withLock { $0.undecided.requests[ticket] }
    }

    // MARK: Conditions and guards

    /// Computes the hash of a condition on a snapshot, or evaluates a guard on it, beside the writer.
    func compare(_ request: TreeRequest, judging isToBeJudged: Bool) {
        var request = request
        request.attempts += 1
        request.isToBeJudged = isToBeJudged
        shared.withLock { shared in
            shared.undecided.requests[request.ticket] = request
            shared.undecided.comparing.append(request.ticket, for: request.requester)
        }
        continueComparing()
    }

    private func continueComparing() {
        while true {
            let next: TreeRequest? = shared.withLock { shared in
                guard shared.undecided.comparisons < Limits.treeComparisonsMax else { return nil }
                while let ticket = shared.undecided.comparing.popFirst() {
                    guard let request = shared.undecided.requests[ticket] else { continue }
                    shared.undecided.comparisons += 1
                    return request
                }
                return nil
            }
            guard let next else { return }
            let end: @Sendable (TreeRequest) -> Void = { [weak self] request in
                guard let self else { return }
                shared.withLock { $0.undecided.comparisons -= 1 }
                resume(request)
                continueComparing()
            }
            background.run(next.requester, { end(next.failing($0)) }) { [weak self] in
                guard let self else { return }
                var request = next
                do throws(Status) {
                    let view = try self.view()
                    defer { view.close() }
                    if request.isToBeJudged {
                        request.judgement = try judgement(request, view)
                    } else {
                        request.comparison = try comparison(request, view)
                    }
                } catch {
                    request.failure = error
                }
                end(request)
            }
        }
    }

    private func comparison(_ request: TreeRequest, _ view: TreeView) throws(Status) -> TreeComparison? {
        guard let condition = request.write.condition else { return nil }
        let kept = shared.withLock { $0.hashes.hashes(of: condition.path, at: view.version, $0.changes) }
        let hashes = if let kept { kept } else { try view.hashes(at: condition.path) }
        if kept == nil {
            options.counters.hashes.add(1, ordering: .relaxed)
            shared.withLock { $0.hashes.keep(hashes, of: condition.path, at: view.version) }
        }
        return TreeComparison(version: view.version, isEqual: hashes.meet(condition))
    }

    private func judgement(_ request: TreeRequest, _ view: TreeView) throws(Status) -> TreeJudgement? {
        guard let treeGuard = request.write.guard else { return nil }
        options.counters.judgements.add(1, ordering: .relaxed)
        return try TreeJudgement(of: request.write, by: treeGuard, on: view)
    }

    // MARK: Large writes

    /// Makes a write in slices, when it is the first of the large writes: one at a time.
    func replace(_ request: TreeRequest) {
        leave(request)
        var request = request
        request.replacement = nil
        request.judgement = nil
        request.attempts += 1
        if request.attempts > Limits.treeAttemptsMax {
            return decide(request, .failed(Self.tooFast))
        }
        shared.withLock { shared in
            shared.undecided.requests[request.ticket] = request
            shared.undecided.replacing.append(request.ticket, for: request.requester)
        }
        continueReplacing()
    }

    static let tooFast = Status.unavailable("The data changes too fast for a write of this size.")

    private func continueReplacing() {
        let next: (request: TreeRequest, id: UInt32)? = shared.withLock { shared in
            guard shared.undecided.replaced == nil, !shared.undecided.isSettling else { return nil }
            while let ticket = shared.undecided.replacing.popFirst() {
                guard let request = shared.undecided.requests[ticket] else { continue }
                shared.undecided.replaced = ticket
                return (request, shared.undecided.nextID())
            }
            return nil
        }
        guard let next else { return }
        let refused: @Sendable (Status) -> Void = { [weak self] in self?.resume(next.request.failing($0)) }
        background.run(next.request.requester, refused) { [weak self] in
            guard let self else { return }
            var request = next.request
            do throws(Status) {
                let view = try self.view()
                defer { view.close() }
                request = try prepare(request, next.id, view)
            } catch {
                request.failure = error
            }
            let prepared = request
            if prepared.replacement == nil { return resume(prepared) }
            let isLeft = shared.withLock { shared in
                if shared.undecided.requests[prepared.ticket] == nil { return false }
                shared.undecided.requests[prepared.ticket] = prepared
                return true
            }
            if isLeft { enqueueSlice(prepared) }
        }
    }

    /// Computes the values of a large write, and evaluates its guard, so that no record is staged for a write that
    /// fails.
    private func prepare(_ request: TreeRequest, _ id: UInt32, _ view: TreeView) throws(Status) -> TreeRequest {
        var request = request
        let write = request.write
        if let condition = write.condition, condition.reveals || write.guard == nil {
            request.comparison = try comparison(request, view)
            if request.comparison?.isEqual == false { return request }
        }
        let changes = try write.resolvedChanges(on: view)
        request.judgement = try judgement(request, view)
        if write.condition != nil, request.comparison == nil {
            request.comparison = try comparison(request, view)
            if request.comparison?.isEqual == false { return request }
        }
        let based = write.changes.indices.filter { write.changes[$0].node.dependsOnPresent }
        let isUpdatable = TreeReplacement.isUpdatable(based.map { write.changes[$0] })
        let version = isUpdatable ? nil : view.version
        let isOfRanges =
            (based.isEmpty || !isUpdatable)
            && TreeReplacement.hasFewLocations(changes, countMax: options.replacementLocationsMax)
        request.replacement =
            isOfRanges
            ? TreeReplacement(id: id, changes, basedOn: version, view.indexes)
            : TreeReplacement(
                wide: id, changes, basedOn: version, updating: isUpdatable ? based : [], view.indexes)
        return request
    }

    private func enqueueSlice(_ request: TreeRequest) {
        let isQueued = shared.withLock { shared in
            if shared.isStopped || shared.isClosing { return false }
            shared.queue.resume(
                .stage(ticket: request.ticket), for: request.requester, cost: options.slices.recordsMax)
            return true
        }
        if isQueued { wake() }
    }

    /// Puts a part of a large write's records into the staging area. Must be called on the writer's thread.
    func stage(_ ticket: UInt64) {
        guard var request = undecided(ticket), let replacement = request.replacement else { return }
        // It begins again.
        if replacement.wide?.isAbandoned == true { return resume(request) }
        do throws(Status) {
            if try make(replacement) {
                resume(request)
            } else {
                enqueueSlice(request)
            }
        } catch {
            request.failure = Status(.unavailable, error.message)
            resume(request)
        }
    }

    /// - Returns: whether all of it is staged.
    private func make(_ replacement: TreeReplacement) throws(Status) -> Bool {
        guard let wide = replacement.wide else {
            return try store.stage(replacement.id, options.slices) { replacement.next() }
        }
        // From here on other writes are made on its shadow, too.
        let indexes = shared.withLock { shared in
            shared.undecided.wide = wide
            return shared.indexes
        }
        return try store.build(options.slices) { transaction, slice throws(Status) in
            try wide.make(&slice, transaction, indexes)
        }
    }

    /// A large write is made or has failed, or begins again: its staged records are moved or deleted.
    private func leave(_ request: TreeRequest) {
        let isLeft = shared.withLock { shared in
            guard shared.undecided.replaced == request.ticket else { return false }
            shared.undecided.replaced = nil
            shared.undecided.wide = nil
            shared.undecided.isSettling = true
            return true
        }
        if isLeft {
            continueSettling()
            continueBuilding()
        }
    }

    func continueSettling() {
        let isDue = shared.withLock { shared in
            if !shared.undecided.isSettling || shared.undecided.isSettleQueued { return false }
            shared.undecided.isSettleQueued = true
            return true
        }
        if isDue { enqueue(.settle, for: .background, cost: options.slices.recordsMax) }
    }

    /// A part of the work after a large write. Must be called on the writer's thread.
    func settle() {
        shared.withLock { $0.undecided.isSettleQueued = false }
        do throws(Status) {
            let isDone = store.hasGraft ? try store.settle(options.slices) : try store.sweep(options.slices)
            if isDone, try !store.hasStaged() {
                shared.withLock { $0.undecided.isSettling = false }
                continueReplacing()
            } else {
                continueSettling()
            }
        } catch {
            // The store fails: the next group of writes continues it, or an idle moment.
        }
    }
}

extension Node {
    /// Whether one of its values depends on the tree.
    var dependsOnPresent: Bool {
        for case .deferred(let value)? in [self.value, priority] where value != .timestamp { return true }
        return children.contains { $0.node.dependsOnPresent }
    }
}
