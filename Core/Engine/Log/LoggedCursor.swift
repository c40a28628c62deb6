import HearthModel

/// A walk over the active tree, the frozen one and the base at once. In a transaction that changes the active tree
/// meanwhile, the rest of the walk sees the changes.
final class LoggedCursor: KeyCursor {
    private let view: LoggedView
    private let keyspace: Keyspace
    private let reverse: Bool
    private let values: Bool
    private let dropping: Int
    /// What the base's keys lack at their start; `prefix` is the same bytes.
    private let prefix: [UInt8]
    /// What is left of the range.
    private var lower: [UInt8]
    private var upper: [UInt8]?
    private var phase = Phase.unstarted
    /// The view's, when the walks were begun.
    private var changes: Int

    private var active: TableWalk
    private var frozen: TableWalk
    private var activeRanges: TableRangeWalk
    private var frozenRanges: TableRangeWalk
    /// How many tombstones the walk has met.
    private(set) var tombstones = 0
    private var base: (any KeyCursor)?
    private var baseHead = BaseHead.unread
    /// Valid at a row; without the prefix.
    private var baseKey: [UInt8] = []
    /// Which of the three are at the present key.
    private var usesActive = false
    private var usesFrozen = false
    private var usesBase = false
    /// Who has the present key; the base when it is nil.
    private var entry: TableEntry?

    private enum Phase {
        /// The next step finds the first key of what is left of the range.
        case unstarted
        case walking
        case ended
    }

    private enum BaseHead { case unread, row, ended }

    init(_ view: LoggedView, _ keyspace: Keyspace, _ range: KeyRange, reverse: Bool, values: Bool, dropping: Int) {
        self.view = view
        self.keyspace = keyspace
        self.reverse = reverse
        self.values = values
        self.dropping = dropping
        prefix = range.lower.count >= dropping ? Array(range.lower[..<dropping]) : []
        lower = range.lower
        upper = range.upper
        changes = view.changes
        active = TableWalk(view.active(keyspace))
        frozen = TableWalk(view.frozen(keyspace))
        activeRanges = TableRangeWalk(view.activeRanges(keyspace))
        frozenRanges = TableRangeWalk(view.frozenRanges(keyspace))
        if range.isEmpty { baseHead = .ended }
    }

    var key: [UInt8] {
        precondition(!view.isClosed, "the snapshot is closed")
        if let key = entry?.key {
            return key.count > dropping ? RawKey(key.base + dropping, key.count - dropping).bytes : []
        }
        return prefix.count == dropping ? baseKey : Array(baseKey.dropFirst(dropping))
    }

    var value: [UInt8] {
        precondition(!view.isClosed, "the snapshot is closed")
        guard values, phase == .walking else { return [] }
        return entry.map { [UInt8]($0.value) } ?? base?.value ?? []
    }

    func withRow(
        _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(Status) -> Void
    ) throws(Status) {
        precondition(!view.isClosed, "the snapshot is closed")
        guard phase == .walking else { return }
        if let entry {
            let key = UnsafeRawBufferPointer(start: entry.key.base, count: entry.key.count)
            return try body(
                UnsafeRawBufferPointer(rebasing: key.dropFirst(dropping)),
                values ? entry.value : UnsafeRawBufferPointer(start: nil, count: 0))
        }
        try base?.withRow { key, value throws(Status) in
            // The base leaves out no more than the range's keys have.
            try body(UnsafeRawBufferPointer(rebasing: key.dropFirst(dropping - prefix.count)), value)
        }
    }

    func next() throws(Status) -> Bool {
        if phase == .ended { return false }
        try view.check()
        if view.changes != changes { restart() }
        if phase == .walking {
            advance()
        } else {
            move(&active)
            move(&frozen)
            skipHidden(&frozen)
            phase = .walking
        }
        while try choose() {
            guard let entry, entry.isTombstone else { return true }
            tombstones += 1
            advance()
        }
        close()
        return false
    }

    /// Moves those that are at the present key.
    @inline(__always)
    private func advance() {
        if usesActive { if reverse { active.previous() } else { active.next() } }
        if usesFrozen {
            if reverse { frozen.previous() } else { frozen.next() }
            skipHidden(&frozen)
        }
        if usesBase { baseHead = .unread }
    }

    /// Finds the key that is next, and who has it; false at the end.
    private func choose() throws(Status) -> Bool {
        if baseHead == .unread { try readBase() }
        entry = nil
        usesActive = false
        usesFrozen = false
        usesBase = false
        if let found = active.entry, !isOutside(found.key) {
            entry = found
            usesActive = true
        }
        if let found = frozen.entry, !isOutside(found.key) {
            let order = entry.map { directed(found.key.compare($0.key)) } ?? -1
            usesFrozen = order <= 0
            if order < 0 {
                entry = found
                usesActive = false
            }
        }
        guard baseHead == .row else { return entry != nil }
        let order = entry.map { entry in directed(-compareBase(entry.key)) } ?? -1
        usesBase = order <= 0
        if order < 0 {
            entry = nil
            usesActive = false
            usesFrozen = false
        }
        return true
    }

    /// The order of a key and the base's.
    @inline(__always)
    private func compareBase(_ key: RawKey) -> Int {
        let rest = RawKey(key.base + prefix.count, max(0, key.count - prefix.count))
        return baseKey.withKey { rest.compare($0) }
    }

    @inline(__always)
    private func directed(_ order: Int) -> Int { reverse ? -order : order }

    @inline(__always)
    private func isOutside(_ key: RawKey) -> Bool {
        if reverse { return lower.withKey { key.compare($0) < 0 } }
        return upper.map { $0.withKey { key.compare($0) >= 0 } } ?? false
    }

    private func move(_ walk: inout TableWalk) {
        if walk.isEmpty { return }
        if !reverse {
            lower.withKey { walk.moveUp(to: $0) }
        } else if let upper {
            upper.withKey { walk.moveDown(below: $0) }
        } else {
            walk.moveDown(below: nil)
        }
    }

    // MARK: The base

    private func readBase() throws(Status) {
        do throws(Status) {
            let cursor = try openBase()
            while try cursor.next() {
                baseKey = cursor.key
                if keyspace == .meta, prefix + baseKey == LogPosition.key { continue }
                guard let range = hiddenBase() else { return baseHead = .row }
                // Whether anything is left behind it.
                if reverse {
                    if UTF8Order.compare(range.lower, lower) <= 0 { break }
                    try cursor.seek(range.lower)
                } else {
                    guard let end = range.upper, upper.map({ UTF8Order.compare(end, $0) < 0 }) ?? true else { break }
                    try cursor.seek(end)
                }
            }
        } catch {
            view.noteBaseFailure(error)
            throw error
        }
        baseHead = .ended
    }

    /// The range that hides the base's key.
    private func hiddenBase() -> KeyRange? {
        if activeRanges.isEmpty, frozenRanges.isEmpty { return nil }
        let range = (prefix + baseKey).withKey { activeRanges.range(with: $0) ?? frozenRanges.range(with: $0) }
        return range.map { KeyRange(lower: $0.lower.bytes, upper: $0.upper?.bytes) }
    }

    /// Moves the frozen tree's walk to the next key that the active ranges don't hide.
    private func skipHidden(_ walk: inout TableWalk) {
        if activeRanges.isEmpty { return }
        while let entry = walk.entry, !isOutside(entry.key), let range = activeRanges.range(with: entry.key) {
            if reverse {
                walk.moveDown(below: range.lower)
            } else if let upper = range.upper {
                walk.moveUp(to: upper)
            } else {
                walk = TableWalk(nil)
            }
        }
    }

    private func openBase() throws(Status) -> any KeyCursor {
        if let base { return base }
        let cursor = try view.base().scan(
            keyspace, KeyRange(lower: lower, upper: upper), reverse: reverse, values: values, dropping: prefix.count)
        base = cursor
        return cursor
    }

    // MARK: Moving

    func seek(_ target: [UInt8]) throws(Status) {
        if phase == .ended { return }
        try view.check()
        if phase == .walking, presentKey.withKey({ present in target.withKey { directed($0.compare(present)) <= 0 } }) {
            return
        }
        if reverse {
            let bound = target + [0]
            if let upper, UTF8Order.compare(bound, upper) >= 0 { return }
            upper = bound
        } else {
            if UTF8Order.compare(target, lower) <= 0 { return }
            lower = target
        }
        if baseHead == .row {
            // The base may be ahead of the walk.
            let order = (prefix + baseKey).withKey { base in target.withKey { directed(base.compare($0)) } }
            if order < 0 { baseHead = .unread }
        }
        if baseHead == .unread { try base?.seek(target) }
        phase = .unstarted
    }

    /// The whole key at the present position.
    private var presentKey: [UInt8] { entry?.key.bytes ?? prefix + baseKey }

    /// The transaction has changed the active tree: what is behind the present key is looked up in the new one.
    private func restart() {
        changes = view.changes
        active = TableWalk(view.active(keyspace))
        activeRanges = TableRangeWalk(view.activeRanges(keyspace))
        if phase == .walking {
            if reverse { upper = presentKey } else { lower = presentKey + [0] }
            move(&active)
            // What was at the present key is left.
            if usesFrozen { if reverse { frozen.previous() } else { frozen.next() } }
            if usesBase { baseHead = .unread }
            (usesActive, usesFrozen, usesBase) = (false, false, false)
        }
        skipHidden(&frozen)
        // The base may be ahead of the walk.
        if baseHead == .row, hiddenBase() != nil { baseHead = .unread }
    }

    func close() {
        phase = .ended
        base?.close()
        base = nil
        active = TableWalk(nil)
        frozen = TableWalk(nil)
        entry = nil
        baseKey = []
    }
}
