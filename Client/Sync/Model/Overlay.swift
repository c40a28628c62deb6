/// The single mutation that changes the remote document into the local one.
package struct Overlay: Sendable {
    /// The newest batch in it.
    package var largestBatchID: Int
    package var mutation: Mutation

    package init(largestBatchID: Int, mutation: Mutation) {
        self.largestBatchID = largestBatchID
        self.mutation = mutation
    }
}
