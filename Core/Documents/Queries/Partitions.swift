import HearthModel

/// Cuts a collection group into parts of about equal size.
package enum Partitions {
    /// Minimum number of documents in a part; smaller groups are not cut.
    static let partSizeMin = 128

    /// The keys of documents at which parts begin, ascending in the order of names.
    /// - Parameters:
    ///   - query: a collection group by name, without filters.
    ///   - count: the requested number of cuts; fewer are made when the parts would be too small.
    package static func cuts(_ query: NormalizedQuery, count: Int, view: ReadView) throws(Status) -> [[UInt8]] {
        let total = try self.count(query, view)
        let cuts = min(count, total / partSizeMin)
        guard cuts > 0 else { return [] }
        var keys: [[UInt8]] = []
        let execution = try QueryExecution(query, view: view)
        var position = 0
        while keys.count < cuts, let result = try execution.nextKey() {
            // The parts are [0, c1), [c1, c2) … with cut number i at i/(cuts + 1) of the whole.
            if position == (keys.count + 1) * total / (cuts + 1) { keys.append(result) }
            position += 1
        }
        return keys
    }

    private static func count(_ query: NormalizedQuery, _ view: ReadView) throws(Status) -> Int {
        let execution = try QueryExecution(query, view: view)
        var total = 0
        while try execution.nextKey() != nil { total += 1 }
        return total
    }
}
