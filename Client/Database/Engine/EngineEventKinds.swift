/// The events that an observer wants. Empty for an observer that only keeps its location's data current.
struct EngineEventKinds: OptionSet, Hashable, Sendable {
    let rawValue: UInt8

    static let childRemoved = EngineEventKinds(rawValue: 1 << 0)
    static let childAdded = EngineEventKinds(rawValue: 1 << 1)
    static let childMoved = EngineEventKinds(rawValue: 1 << 2)
    static let childChanged = EngineEventKinds(rawValue: 1 << 3)
    static let value = EngineEventKinds(rawValue: 1 << 4)

    /// With child events: the additions and moves of one change come together, in the order of the query, so that each
    /// position depends only on earlier events. Otherwise all additions come first, as in Google's SDKs, where an addition
    /// may follow a sibling that has yet to move.
    static let inListOrder = EngineEventKinds(rawValue: 1 << 5)

    static let child: EngineEventKinds = [.childRemoved, .childAdded, .childMoved, .childChanged]
}
