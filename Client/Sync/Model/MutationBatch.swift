import HearthModel

/// Mutations committed together.
public struct MutationBatch: Sendable {
    /// Ascending over all users, from 1.
    public var id: Int
    public var localWriteTime: Timestamp
    /// Never sent: give transforms that can't be applied twice their base.
    public var baseMutations: [Mutation]
    public var mutations: [Mutation]

    public static let unknownID = -1
    public var keys: Set<ResourcePath> { Set(mutations.map(\.key)) }

    public init(id: Int, localWriteTime: Timestamp, baseMutations: [Mutation], mutations: [Mutation]) {
        self.id = id
        self.localWriteTime = localWriteTime
        self.baseMutations = baseMutations
        self.mutations = mutations
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
