import Synchronization

/// What the budgets of a process may use together, besides what each has of its own.
///
/// So the process has one bound although each kind of use may become large while the others are small. A budget may take
/// at most seven times what it leaves to the others. Administrators have an eighth that nobody else gets. Nobody waits for
/// the pool: it gives, or refuses at once.
package final class MemoryPool: Sendable {
    package let bytesMax: Int
    private let clientsBytesMax: Int
    private let used = Atomic<Int>(0)

    package init(bytesMax: Int) {
        self.bytesMax = bytesMax
        clientsBytesMax = bytesMax - bytesMax / 8
    }

    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Whether what only serves speed should be small: more than half of what clients may use is in use.
    package var isTight: Bool { usedBytes > clientsBytesMax / 2 }

    /// How much more clients may have in a budget that has taken `loanBytes`.
    /// - Returns: less than nothing when it has more than it should.
    fileprivate func freeBytes(besides loanBytes: Int) -> Int { (7 * (clientsBytesMax - usedBytes) - loanBytes) / 8 }

    fileprivate func take(_ bytes: Int, besides loanBytes: Int, isAdministrator: Bool) -> Bool {
        if !isAdministrator, bytes > freeBytes(besides: loanBytes) { return false }
        let limit = isAdministrator ? bytesMax : clientsBytesMax
        var now = usedBytes
        while now + bytes <= limit {
            let (isTaken, seen) = used.compareExchange(expected: now, desired: now + bytes, ordering: .relaxed)
            if isTaken { return true }
            now = seen
        }
        return false
    }

    fileprivate func give(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}

/// What one budget has: a part of its own, and what it has taken from a pool. The owner guards it.
///
/// Some of its own part is kept: it is used only when the pool gives nothing more. Else whoever holds much would have used
/// it up already when other budgets empty the pool, and nothing would be left for those who hold little.
package struct MemoryLoan: Sendable {
    private let pool: MemoryPool
    private let ownBytes: Int
    private let keptBytes: Int
    package private(set) var bytes = 0

    /// It takes and gives in steps: few changes of a budget are felt by all.
    private static let stepBytes = 256 << 10

    /// - Parameter keptBytes: nil: three quarters of its own part.
    package init(_ pool: MemoryPool, ownBytes: Int, keptBytes: Int? = nil) {
        self.pool = pool
        self.ownBytes = ownBytes
        self.keptBytes = keptBytes ?? ownBytes - ownBytes / 4
    }

    /// How much more clients could have, with so much in use.
    package func freeBytes(used: Int) -> Int {
        let isKeptInUse = needed(for: used) > bytes
        return ownBytes + bytes - used + (isKeptInUse ? 0 : max(0, pool.freeBytes(besides: bytes)))
    }

    /// How much should be in use at most, for an owner who can bring it about.
    package var allowedBytes: Int { ownBytes + max(0, bytes + pool.freeBytes(besides: bytes)) }

    /// Takes or gives what is needed for so much in use.
    /// - Returns: whether there is enough. If not, nothing has been taken.
    @discardableResult
    package mutating func cover(_ used: Int, isAdministrator: Bool) -> Bool {
        let needed = needed(for: used)
        if needed <= bytes {
            giveBack(needed)
            return true
        }
        let more = needed - bytes
        let step = (more + Self.stepBytes - 1) / Self.stepBytes * Self.stepBytes
        if pool.take(step, besides: bytes, isAdministrator: isAdministrator) {
            bytes += step
        } else if pool.take(more, besides: bytes, isAdministrator: isAdministrator) {
            bytes += more
        }
        return used <= ownBytes + bytes
    }

    private func needed(for used: Int) -> Int { max(0, used - (ownBytes - keptBytes)) }

    private mutating func giveBack(_ needed: Int) {
        if bytes == 0 || needed > 0 && bytes - needed <= 2 * Self.stepBytes { return }
        let left = needed == 0 ? 0 : needed + Self.stepBytes
        pool.give(bytes - left)
        bytes = left
    }
}
