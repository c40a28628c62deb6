import HearthModel

/// The queries that read-write transactions have run or wait to run.
///
/// A query waits for earlier ones, of other owners, with which it may share a document. Transactions with the same
/// query queue behind each other in a group, of which only the first can have the lock. Groups are found by the values
/// that their filters allow (`QueryOverlaps`), and by the values of a change (`QueryIndex`), so the cost of a call
/// depends on the different queries that it meets, not on how many transactions are open. When the first of a group
/// waits for others it stores one of them; only when that one is removed, another one is searched for.
struct QueryLocks {
    typealias Owner = LockTable.Owner
    typealias Callback = LockTable.Callback

    /// Identifies a lock.
    struct LockID: Sendable {
        var number: UInt64
    }

    private final class Lock {
        let number: UInt64
        let owner: Owner
        let group: Group
        /// The callbacks for when the lock is granted; empty when it is.
        var grants: [Callback]
        /// When others may overtake it, while it is granted.
        var leaseUntil: UInt64

        init(_ number: UInt64, _ owner: Owner, _ group: Group, leaseUntil: UInt64) {
            self.number = number
            self.owner = owner
            self.group = group
            self.leaseUntil = leaseUntil
            grants = []
        }

        var isGranted: Bool { grants.isEmpty }
    }

    /// The locks on equal queries, one for each owner.
    private final class Group: QueryFootprinted {
        let footprint: QueryFootprint
        let key: [UInt8]
        /// In the order of arrival.
        private(set) var locks: [Lock] = []
        private(set) var byOwner: [Owner: Lock] = [:]
        /// Another group that contains a lock before the first one here.
        var awaited: Group?
        /// The groups that wait for this one.
        var waiting: [ObjectIdentifier: Group] = [:]

        init(_ footprint: QueryFootprint, key: [UInt8]) {
            self.footprint = footprint
            self.key = key
        }

        func append(_ lock: Lock) {
            locks.append(lock)
            byOwner[lock.owner] = lock
        }

        func remove(_ lock: Lock) {
            if let index = index(of: lock) { locks.remove(at: index) }
            byOwner[lock.owner] = nil
        }

        func index(of lock: Lock) -> Int? {
            let index = firstIndex(from: lock.number)
            return index < locks.count && locks[index] === lock ? index : nil
        }

        /// The first lock that was added at a number or after it.
        private func firstIndex(from number: UInt64) -> Int {
            var low = 0
            var high = locks.count
            while low < high {
                let middle = (low + high) / 2
                if locks[middle].number < number { low = middle + 1 } else { high = middle }
            }
            return low
        }

        /// Whether others of its locks came before one of another group.
        func precedes(_ lock: Lock) -> Bool {
            guard let first = locks.first(where: { $0.owner != lock.owner }) else { return false }
            return first.number < lock.number
        }

        /// The last one of another owner that came before a lock.
        func last(before lock: Lock) -> Lock? {
            locks[..<firstIndex(from: lock.number)].last { $0.owner != lock.owner }
        }
    }

    /// The groups of one scope.
    private struct Shelf {
        let overlaps = QueryOverlaps<Group>()
        var byChange = QueryIndex<Group>()
    }

    private var locks: [UInt64: Lock] = [:]
    private var groups: [[UInt8]: Group] = [:]
    private var shelves: [WatchScope: Shelf] = [:]
    /// The collections with an id that have a shelf.
    private var collections: [[UInt8]: Set<WatchScope>] = [:]
    private var lastNumber: UInt64 = 0

    var count: Int { locks.count }
    var isEmpty: Bool { locks.isEmpty }

    /// How many queries all calls together have examined to find overlaps.
    var visits: Int { shelves.values.reduce(0) { $0 + $1.overlaps.visits } }

    // MARK: Adding and removing

    /// - Parameters:
    ///   - leaseUntil: used when the lock is granted at once.
    ///   - granted: stored while the owner waits for its lock.
    /// - Returns: the new lock; nil when the owner has one on the same query already, or waits for it.
    mutating func append(
        _ owner: Owner, _ footprint: QueryFootprint, leaseUntil: UInt64 = .max, _ granted: @escaping Callback
    ) -> (id: LockID?, isGranted: Bool) {
        lastNumber += 1
        var key = footprint.key
        // A query without results shares nothing, not even with equal queries.
        if footprint.alternatives.isEmpty { IndexValue.appendBigEndian(lastNumber, to: &key) }
        let group = groups[key] ?? Group(footprint, key: key)
        if let known = group.byOwner[owner] {
            if !known.isGranted { known.grants.append(granted) }
            return (nil, known.isGranted)
        }
        let lock = Lock(lastNumber, owner, group, leaseUntil: leaseUntil)
        locks[lock.number] = lock
        group.append(lock)
        if group.locks.count > 1 {
            lock.grants = [granted]
        } else {
            file(group)
            if !canGrant(to: group) { lock.grants = [granted] }
        }
        return (LockID(number: lock.number), lock.isGranted)
    }

    private mutating func file(_ group: Group) {
        groups[group.key] = group
        let scope = group.footprint.scope
        if shelves[scope] == nil, case .collection = scope, let id = group.footprint.collectionID {
            collections[id, default: []].insert(scope)
        }
        let query = group.footprint.matcher.query
        shelves[scope, default: Shelf()].byChange.insert(group, for: query, withinCursors: false)
        shelves[scope]?.overlaps.insert(group)
    }

    private mutating func unfile(_ group: Group) {
        groups[group.key] = nil
        let scope = group.footprint.scope
        shelves[scope]?.overlaps.remove(group)
        shelves[scope]?.byChange.remove(group)
        guard shelves[scope]?.overlaps.isEmpty == true else { return }
        shelves[scope] = nil
        guard case .collection = scope, let id = group.footprint.collectionID else { return }
        collections[id]?.remove(scope)
        if collections[id]?.isEmpty == true { collections[id] = nil }
    }

    /// - Parameter leaseUntil: the lease of those that are granted now.
    /// - Returns: the callbacks of the removed ones that were still waiting, and those that are granted now, in the
    ///   order of arrival.
    mutating func remove(
        _ ids: [LockID], leaseUntil: UInt64 = .max
    ) -> (waiting: [Callback], granted: [(owner: Owner, calls: [Callback])]) {
        var waiting: [Callback] = []
        var changed: [ObjectIdentifier: Group] = [:]
        for id in ids {
            guard let lock = locks.removeValue(forKey: id.number) else { continue }
            let group = lock.group
            if group.locks.first === lock { stopWaiting(group) }
            group.remove(lock)
            waiting += lock.grants
            if group.locks.isEmpty { unfile(group) }
            changed[ObjectIdentifier(group)] = group
        }
        var open = changed
        for group in changed.values {
            for (id, other) in group.waiting {
                other.awaited = nil
                open[id] = other
            }
            group.waiting = [:]
        }
        let first = open.values.compactMap(\.locks.first).filter { !$0.isGranted && $0.group.awaited == nil }
        var granted: [(owner: Owner, calls: [Callback])] = []
        for lock in first.sorted(by: { $0.number < $1.number }) where canGrant(to: lock.group) {
            granted.append((lock.owner, lock.grants))
            lock.grants = []
            lock.leaseUntil = leaseUntil
        }
        return (waiting, granted)
    }

    /// Removes all.
    /// - Returns: the callbacks of those that were still waiting.
    mutating func removeAll() -> [Callback] {
        let waiting = locks.values.flatMap(\.grants)
        for group in groups.values { stopWaiting(group) }
        self = QueryLocks()
        return waiting
    }

    private func stopWaiting(_ group: Group) {
        group.awaited?.waiting[ObjectIdentifier(group)] = nil
        group.awaited = nil
    }

    // MARK: Order of the locks

    /// Whether no lock is before the first of a group; otherwise it waits for one with which it may share a document.
    private func canGrant(to group: Group) -> Bool {
        guard let first = group.locks.first else { return false }
        let isBlocked = visit(near: group) { other in
            guard other.precedes(first) else { return false }
            group.awaited = other
            other.waiting[ObjectIdentifier(group)] = group
            return true
        }
        return !isBlocked
    }

    /// Calls `body` with the other groups that may share a document with one, some of them more than once, until it
    /// returns true.
    /// - Returns: whether it did.
    private func visit(near group: Group, _ body: (Group) -> Bool) -> Bool {
        let footprint = group.footprint
        func visit(_ scope: WatchScope) -> Bool {
            shelves[scope]?.overlaps.visit(footprint) { $0 !== group && body($0) } ?? false
        }
        if case .everything = footprint.scope { return shelves.keys.contains(where: visit) }
        guard let id = footprint.collectionID else { return false }
        if visit(.everything) || visit(.collectionGroup(id)) { return true }
        if case .collection = footprint.scope { return visit(footprint.scope) }
        return collections[id]?.contains(where: visit) ?? false
    }

    private func waitingLocks(_ ids: [LockID]) -> [Lock] {
        ids.compactMap { locks[$0.number] }.filter { !$0.isGranted }
    }

    /// Owners for which the waiting locks among these wait: of each group the nearest. Those farther ahead in the group
    /// are found through that one.
    func owners(before ids: [LockID]) -> [Owner] {
        var owners: Set<Owner> = []
        for lock in waitingLocks(ids) {
            if let other = lock.group.last(before: lock) { owners.insert(other.owner) }
            _ = visit(near: lock.group) { group in
                if let other = group.last(before: lock) { owners.insert(other.owner) }
                return false
            }
        }
        return Array(owners)
    }

    /// Of all that are before them, those whose lock is granted.
    func holders(before ids: [LockID]) -> [(owner: Owner, leaseUntil: UInt64)] {
        var owners: [Owner: UInt64] = [:]
        for lock in waitingLocks(ids) {
            func examine(_ group: Group) -> Bool {
                guard let first = group.locks.first, first.isGranted, first.owner != lock.owner,
                    first.number < lock.number
                else { return false }
                owners[first.owner] = min(owners[first.owner] ?? .max, first.leaseUntil)
                return false
            }
            _ = examine(lock.group)
            _ = visit(near: lock.group, examine)
        }
        return owners.map { ($0.key, $0.value) }
    }

    /// The end of the first lease among some locks that are granted.
    func earliestLease(of ids: [LockID]) -> UInt64? {
        ids.compactMap { locks[$0.number] }.filter(\.isGranted).map(\.leaseUntil).min()
    }

    /// Whether others wait for some locks.
    func areAwaited(_ ids: [LockID]) -> Bool {
        ids.compactMap { locks[$0.number] }.contains { lock in
            func waits(_ group: Group) -> Bool {
                guard let last = group.locks.last else { return false }
                return !last.isGranted && last.number > lock.number
            }
            return waits(lock.group) || visit(near: lock.group, waits)
        }
    }

    /// The granted queries that may match a document before or after a change.
    func held(
        near change: Change, otherThan owner: Owner
    ) throws(Status) -> [(owner: Owner, matcher: QueryMatcher)] {
        if locks.isEmpty { return [] }
        var held: [(owner: Owner, matcher: QueryMatcher)] = []
        for scope in ChangeHub.scopes(of: change.key) {
            guard let shelf = shelves[scope] else { continue }
            for group in try shelf.byChange.candidates(for: change) {
                guard let first = group.locks.first, first.isGranted, first.owner != owner else { continue }
                held.append((first.owner, group.footprint.matcher))
            }
        }
        return held
    }
}
