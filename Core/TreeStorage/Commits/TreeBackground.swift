import HearthModel

/// The executor for computations beside the writer.
package struct TreeBackground: Sendable {
    /// Runs a job on the account of a requester, or reports why it does not.
    package typealias Run =
        @Sendable (
            _ requester: Requester, _ refused: @escaping @Sendable (Status) -> Void,
            _ job: @escaping @Sendable () -> Void
        ) -> Void

    let run: Run
}
