import HearthConcurrency
import HearthModel
import Synchronization

/// A version of a table that a long snapshot holds; it can be taken away, on any thread.
final class HeldVersion: Sendable {
    let number: UInt64
    private nonisolated(unsafe) let base: any Snapshot
    private let revocation = Atomic(false)

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
    func revoke() {
        revocation.store(true, ordering: .relaxed)
        base.revoke()
    }
}

/// The long snapshots of a store.
///
/// Each keeps the table as it was. Many that began one after another, beside much writing, would keep as many tables:
/// `TableBudget` bounds that by taking the oldest away.
final class HeldVersions: Sendable {
    private struct State {
        var open: [ObjectIdentifier: HeldVersion] = [:]
        /// When versions were taken away last.
        var revocation = MonotonicTime(nanoseconds: 0)
    }

    private let state = Mutex(State())

    /// How long holders have to notice before the next version is taken away.
    private static let patienceMilliseconds = 250

    func add(_ held: HeldVersion) { state.withLock { $0.open[ObjectIdentifier(held)] = held } }

    func remove(_ held: HeldVersion) { state.withLock { _ = $0.open.removeValue(forKey: ObjectIdentifier(held)) } }

    /// Takes the oldest version away from all that hold it, unless others that were revoked are about to be closed.
    /// - Parameter present: the version that is no old one.
    /// - Returns: how many snapshots there were.
    func revokeOldest(before present: UInt64) -> Int {
        let now = MonotonicTime.now
        let oldest = state.withLock { state -> [HeldVersion] in
            let open = state.open.values
            let isPatient = now < state.revocation.advanced(milliseconds: Self.patienceMilliseconds)
            if isPatient, open.contains(where: { $0.isRevoked }) { return [] }
            let old = open.filter { !$0.isRevoked && $0.number < present }
            guard let number = old.lazy.map(\.number).min() else { return [] }
            state.revocation = now
            return old.filter { $0.number == number }
        }
        // A running call of the base is waited for, so this isn't locked meanwhile.
        for held in oldest { held.revoke() }
        return oldest.count
    }
}
