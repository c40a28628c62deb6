public import Foundation
internal import HearthModel

/// Options of a transaction.
public final class TransactionOptions: NSObject, NSCopying {
    /// The maximal number of attempts: 1 to 2,147,483,647; 5 by default. Any other number ends the program.
    public var maxAttempts = TransactionRunner.attemptsDefault {
        didSet {
            orTrap { () throws(Status) in
                guard (1...Int(Int32.max)).contains(maxAttempts) else {
                    throw .invalidArgument(
                        "Invalid maxAttempts (\(maxAttempts)): expected 1 to \(Int32.max).")
                }
            }
        }
    }

    /// The default options.
    public override init() {}

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = TransactionOptions()
        copy.maxAttempts = maxAttempts
        return copy
    }

    public override func isEqual(_ object: Any?) -> Bool {
        (object as? TransactionOptions)?.maxAttempts == maxAttempts
    }

    public override var hash: Int { maxAttempts.hashValue }
}
