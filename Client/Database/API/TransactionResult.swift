public import Foundation
import HearthTree

/// What a transaction's function wants.
public class TransactionResult: NSObject {
    /// nil to abort.
    let node: Node?

    init(node: Node?) { self.node = node }

    /// Of no use: it aborts.
    public override init() { node = nil }

    /// The data as it is at this moment is to be written.
    public class func success(withValue value: MutableData) -> TransactionResult {
        TransactionResult(node: value.node)
    }

    /// Nothing is to be written.
    public class func abort() -> TransactionResult { TransactionResult() }
}
