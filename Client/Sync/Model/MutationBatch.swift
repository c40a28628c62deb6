import HearthModel

/// Mutations committed together.
public struct MutationBatch: Sendable {
    /// Ascending over all users, from 1.
    public var id: Int
    public var localWriteTime: Timestamp
    /// Never sent: give transforms that can't be applied twice their base.
    public var baseMutations: [Mutation]
    public var mutations: [Mutation]
    /// Why what the cache has of it can't be read; it has no mutations then.
    var damage: Status?
    private var damagedKeys: Set<ResourcePath> = []

    public static let unknownID = -1
    public var keys: Set<ResourcePath> { damage == nil ? Set(mutations.map(\.key)) : damagedKeys }

    public init(id: Int, localWriteTime: Timestamp, baseMutations: [Mutation], mutations: [Mutation]) {
        self.id = id
        self.localWriteTime = localWriteTime
        self.baseMutations = baseMutations
        self.mutations = mutations
    }

    /// One that can't be read any more.
    /// - Parameter keys: what it was to change.
    init(id: Int, localWriteTime: Timestamp, damage: Status, keys: Set<ResourcePath>) {
        self.init(id: id, localWriteTime: localWriteTime, baseMutations: [], mutations: [])
        self.damage = damage
        damagedKeys = keys
    }
}

/// The one mutation that turns the remote document into the local one.
public struct Overlay: Sendable {
    /// The newest batch in it.
    public var largestBatchID: Int
    public var mutation: Mutation

    public init(largestBatchID: Int, mutation: Mutation) {
        self.largestBatchID = largestBatchID
        self.mutation = mutation
    }
}
