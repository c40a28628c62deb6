/// One document of a query's results.
package struct QueryResult: Sendable {
    package var key: [UInt8]
    package var document: StoredDocument
    /// The distance of a nearest-neighbour search.
    package var distance: Double?

    package init(key: [UInt8], document: StoredDocument, distance: Double? = nil) {
        self.key = key
        self.document = document
        self.distance = distance
    }
}
