import Synchronization

/// The memory that the budgets of a process share, besides the part that each owns.
///
/// The process has one bound, although each kind of use may grow while the others are small. A budget may take at most
/// seven times what it leaves to the others. An eighth is reserved for administrators. No caller waits for the pool: a
/// request succeeds or fails immediately.
package final class MemoryPool: Sendable {
    package let bytesMax: Int
    private let clientsBytesMax: Int
    private let used = Atomic<Int>(0)
    private let isProcessLarge = Atomic(false)

    package init(bytesMax: Int) {
        self.bytesMax = bytesMax
        clientsBytesMax = bytesMax - bytesMax / 8
    }

    package var usedBytes: Int { used.load(ordering: .relaxed) }

    /// Whether more than half of the clients' part is in use.
    package var isTight: Bool { usedBytes > clientsBytesMax / 2 }

    /// Whether caches should be small: the pool is tight, or the process is large for other reasons.
    package var areCachesTight: Bool { isTight || isProcessLarge.load(ordering: .relaxed) }

    package func setProcessLarge(_ isLarge: Bool) { isProcessLarge.store(isLarge, ordering: .relaxed) }

    /// How much more clients may use in a budget that has taken `loanBytes`.
    /// - Returns: negative when the budget has more than it should.
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

/// The memory of one budget: its own part, and what it has taken from a pool. The owner guards it.
///
/// A part of its own memory is a reserve: it is used only when the pool has nothing left. Without the reserve, large
/// holders would have used the own part already when other budgets empty the pool, and small holders would get nothing.
package struct MemoryLoan: Sendable {
    private let pool: MemoryPool
    private let ownBytes: Int
    private let keptBytes: Int
    package private(set) var bytes = 0

    /// Memory moves in steps of this size, so that few changes of a budget need the pool's lock.
    private static let stepBytes = 256 << 10

    /// - Parameter keptBytes: the reserve; nil: three quarters of its own part.
    package init(_ pool: MemoryPool, ownBytes: Int, keptBytes: Int? = nil) {
        self.pool = pool
        self.ownBytes = ownBytes
        self.keptBytes = keptBytes ?? ownBytes - ownBytes / 4
    }

    /// How much more clients could use, when `used` bytes are in use.
    package func freeBytes(used: Int) -> Int {
        let isKeptInUse = needed(for: used) > bytes
        return ownBytes + bytes - used + (isKeptInUse ? 0 : max(0, pool.freeBytes(besides: bytes)))
    }

    /// The recommended upper bound of use, for an owner that can reduce its use.
    package var allowedBytes: Int { ownBytes + max(0, bytes + pool.freeBytes(besides: bytes)) }

    /// Takes from or returns to the pool what a use of this size needs.
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
