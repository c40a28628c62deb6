import HearthModel

/// Mutations that are committed together.
package struct MutationBatch: Sendable {
    /// Ascending across all users, starting at 1.
    package var id: Int
    package var localWriteTime: Timestamp
    /// Never sent. They store the base values of transforms that are not idempotent.
    package var baseMutations: [Mutation]
    package var mutations: [Mutation]
    /// The reason why the stored batch cannot be read. It has no mutations then.
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

    /// A batch that cannot be read any more.
    /// - Parameter keys: the documents that it affects.
    init(id: Int, localWriteTime: Timestamp, damage: Status, keys: Set<ResourcePath>) {
        self.init(id: id, localWriteTime: localWriteTime, baseMutations: [], mutations: [])
        self.damage = damage
        damagedKeys = keys
    }
}
