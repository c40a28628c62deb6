import HearthModel

/// A document in rules. Its fields are decoded once, when a rule first reads one.
package final class RulesDocument {
    package let path: ResourcePath
    private var decoded: Result<MapValue, Status>?
    private let decode: () throws(Status) -> MapValue
    /// The fields, when they are large.
    let large: LargeMap?

    package init(path: ResourcePath, fields: @escaping () throws(Status) -> MapValue) {
        self.path = path
        decode = fields
        large = nil
    }

    /// A large document: only the fields that rules read are decoded.
    package init(path: ResourcePath, large fields: any LargeFields) {
        self.path = path
        let map = LargeMap(fields)
        large = map
        decode = { () throws(Status) in try map.whole() }
    }

    package convenience init(path: ResourcePath, fields: MapValue) {
        self.init(path: path, fields: { fields })
    }

    /// - Throws: the error of reading the document.
    func fields() throws(Status) -> MapValue {
        if let decoded { return try decoded.get() }
        let result: Result<MapValue, Status>
        do throws(Status) {
            result = .success(try decode())
        } catch {
            result = .failure(error)
        }
        decoded = result
        return try result.get()
    }
}

/// Reads documents for rules; rules do not apply to these reads.
package protocol DocumentReader: AnyObject {
    /// The document at a path; nil when there is none.
    /// - Parameter isAfter: whether the request's own writes are applied.
    /// - Throws: an error with which the request fails.
    func document(_ path: ResourcePath, isAfter: Bool) throws(Status) -> RulesDocument?

    /// Whether a call of `get`, `exists`, `getAfter` or `existsAfter` has a result. Without one it is an error, as in a test whose
    /// case has no mock of it.
    func answers(_ function: String, _ path: ResourcePath) -> Bool
}

extension DocumentReader {
    package func answers(_ function: String, _ path: ResourcePath) -> Bool { true }
}
