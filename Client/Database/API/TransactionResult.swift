public import Foundation
import HearthTree

/// The result of a transaction's function.
public class TransactionResult: NSObject {
    /// The data to write; nil to abort.
    let node: Node?

    init(node: Node?) { self.node = node }

    /// Creates a result that aborts.
    public override init() { node = nil }

    /// Commits the data in its present state.
    public class func success(withValue value: MutableData) -> TransactionResult {
        TransactionResult(node: value.node)
    }

    /// Aborts the transaction; nothing is written.
    public class func abort() -> TransactionResult { TransactionResult() }
}
