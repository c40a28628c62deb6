import HearthModel

/// Mutations committed together.
package struct MutationBatch: Sendable {
    /// Ascending over all users, from 1.
    package var id: Int
    package var localWriteTime: Timestamp
    /// Never sent: give transforms that can't be applied twice their base.
    package var baseMutations: [Mutation]
    package var mutations: [Mutation]
    /// Why what the cache has of it can't be read; it has no mutations then.
    var damage: Status?
    private var damagedKeys: Set<ResourcePath> = []

    package static let unknownID = -1
    package var keys: Set<ResourcePath> { damage == nil ? Set(mutations.map(\.key)) : damagedKeys }

    package init(id: Int, localWriteTime: Timestamp, baseMutations: [Mutation], mutations: [Mutation]) {
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
package struct Overlay: Sendable {
    /// The newest batch in it.
    package var largestBatchID: Int
    package var mutation: Mutation

    package init(largestBatchID: Int, mutation: Mutation) {
        self.largestBatchID = largestBatchID
        self.mutation = mutation
    }
}
