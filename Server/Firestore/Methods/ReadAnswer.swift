import HearthModel
import HearthDocuments

/// The parts of a response other than the read data, when its view is not held.
struct ReadAnswer: Sendable {
    let readTime: Timestamp
    let newTransaction: [UInt8]?
    let withdraw: @Sendable () -> Void

    init(_ grant: Database.ViewGrant) {
        readTime = grant.view.readTime
        newTransaction = grant.newTransaction
        withdraw = grant.undo
    }
}
