public import Foundation
import HearthTree

/// The result of a transaction's function: data to write, or an abort.
public class TransactionResult: NSObject {
    /// The data to write; nil to abort.
    let node: Node?

    init(node: Node?) { self.node = node }

    /// Creates a result that aborts, as `abort()`.
    public override init() { node = nil }

    /// Requests that the data is written.
    /// - Parameter value: the data that the function received, in its present state; not that of a child, which would
    ///   be written at the transaction's location.
    /// - Returns: the result for the function to return.
    public class func success(withValue value: MutableData) -> TransactionResult {
        TransactionResult(node: value.node)
    }

    /// Aborts the transaction: nothing is written, and the completion receives false without an error.
    /// - Returns: the result for the function to return.
    public class func abort() -> TransactionResult { TransactionResult() }
}
