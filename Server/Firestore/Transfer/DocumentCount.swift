import HearthDocuments
import HearthModel

extension Database {
    /// Documents that are counted in one snapshot.
    private static let countStep = 4096

    /// How many documents there are about now: in steps, so that no snapshot is held for long.
    /// - Parameter collectionIDs: the collection groups; nil for all documents.
    /// - Throws: when the control ends the work, or the database can't be read.
    func documentCount(of collectionIDs: [String]?, _ control: TransferControl) throws(Status) -> Int {
        var count = 0
        for id in collectionIDs?.map(Optional.some) ?? [nil] {
            var last: [UInt8]?
            repeat {
                try control.check()
                let keys = try view().documentKeys(of: id, after: last, limit: Self.countStep)
                count += keys.count
                last = keys.count < Self.countStep ? nil : keys.last
            } while last != nil
        }
        return count
    }
}
