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
            count += try Self.countInSteps(control) { position, limit throws(Status) in
                try view().documentKeys(of: id, after: position, limit: limit)
            }
        }
        return count
    }

    /// - Parameter keys: returns the next keys behind a position.
    static func countInSteps(
        _ control: TransferControl, _ keys: (_ position: [UInt8]?, _ limit: Int) throws(Status) -> [[UInt8]]
    ) throws(Status) -> Int {
        var count = 0
        var last: [UInt8]?
        repeat {
            try control.check()
            let found = try keys(last, countStep)
            count += found.count
            last = found.count < countStep ? nil : found.last
        } while last != nil
        return count
    }
}
