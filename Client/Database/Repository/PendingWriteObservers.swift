import HearthApp

/// The ends of the observers of pending writes, until they are removed or the database is closed.
final class PendingWriteObservers: Sendable {
    typealias End = @Sendable (WireFailure) -> Void

    private let state = Locked<(last: Int, ends: [Int: End])>((0, [:]))

    func add(_ end: @escaping End) -> Int {
        state.with { state in
            state.last += 1
            state.ends[state.last] = end
            return state.last
        }
    }

    var count: Int { state.with { $0.ends.count } }

    func contains(_ observer: Int) -> Bool { state.with { $0.ends[observer] != nil } }

    func remove(_ observer: Int) -> End? { state.with { $0.ends.removeValue(forKey: observer) } }

    /// In the order in which they were added.
    func removeAll() -> [End] {
        state.with { state in
            defer { state.ends = [:] }
            return state.ends.sorted { $0.key < $1.key }.map(\.value)
        }
    }
}
