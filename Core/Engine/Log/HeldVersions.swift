import HearthConcurrency
import HearthModel
import Synchronization

/// A version of a table that a long snapshot holds; it can be taken away, on any thread.
final class HeldVersion: Sendable {
    let number: UInt64
    private nonisolated(unsafe) let base: any Snapshot
    private let revocation = Atomic(false)
    private let baseRevocation = Atomic(false)

    /// - Parameters:
    ///   - number: the version's.
    ///   - base: the snapshot's part of the base; only `revoke` is called.
    init(_ number: UInt64, _ base: any Snapshot) {
        self.number = number
        self.base = base
    }

    var isRevoked: Bool { revocation.load(ordering: .relaxed) }

    /// Fails when the version was taken away.
    @inline(__always)
    func check() throws(Status) {
        if isRevoked { throw .unavailable("The snapshot was taken away because it kept too much old data alive.") }
    }

    /// The snapshot's next use fails, and its holder closes it.
    /// - Returns: false when its base is busy; to be called again then.
    func revoke() -> Bool {
        revocation.store(true, ordering: .relaxed)
        if !baseRevocation.load(ordering: .relaxed) { baseRevocation.store(base.revoke(), ordering: .relaxed) }
        return baseRevocation.load(ordering: .relaxed)
    }
}

/// The long snapshots of a store.
///
/// Each keeps the table as it was. Many that began one after another, beside much writing, would keep as many tables:
/// `TableBudget` bounds that by taking the oldest away. The newest of them stays: it keeps no more than a table.
final class HeldVersions: Sendable {
    private struct State {
        var open: [ObjectIdentifier: HeldVersion] = [:]
        /// When versions were taken away last.
        var revocation = MonotonicTime(nanoseconds: 0)

        /// The numbers of old versions, in their order.
        func numbers(before present: UInt64, where isIncluded: (HeldVersion) -> Bool = { _ in true }) -> [UInt64] {
            Set(open.values.filter { $0.number < present && isIncluded($0) }.map(\.number)).sorted()
        }
    }

    private let state = Mutex(State())

    /// Between two revocations: holders have so long to notice.
    private static let pauseMilliseconds = 250

    func add(_ held: HeldVersion) { state.withLock { $0.open[ObjectIdentifier(held)] = held } }

    func remove(_ held: HeldVersion) { state.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(held)) } }

    /// Whether there are old versions to take away.
    func areMany(before present: UInt64) -> Bool {
        state.withLock { $0.numbers(before: present) { !$0.isRevoked }.count > 1 }
    }

    /// Takes the oldest versions away from all that hold them, unless others were taken away lately.
    /// - Parameters:
    ///   - share: of the old versions, the part that may stay, from 0 to 1; what each keeps isn't known. Those that were
    ///     revoked before, but are still held, count as well: they are about to be closed.
    ///   - present: the version that is no old one.
    /// - Returns: how many snapshots there were.
    func revokeOldest(keeping share: Double, before present: UInt64, now: MonotonicTime = .now) -> Int {
        let oldest = state.withLock { state -> [HeldVersion] in
            if now < state.revocation.advanced(milliseconds: Self.pauseMilliseconds) { return [] }
            let kept = max(1, Int(share * Double(state.numbers(before: present).count)))
            let doomed = Set(state.numbers(before: present) { !$0.isRevoked }.dropLast(kept))
            if doomed.isEmpty { return [] }
            state.revocation = now
            return state.open.values.filter { doomed.contains($0.number) && !$0.isRevoked }
        }
        for held in oldest { _ = held.revoke() }
        return oldest.count
    }

    /// Revokes what was busy.
    /// - Returns: whether nothing is busy any more.
    func finishRevocations() -> Bool {
        let revoked = state.withLock { $0.open.values.filter(\.isRevoked) }
        return revoked.reduce(true) { $1.revoke() && $0 }
    }
}
