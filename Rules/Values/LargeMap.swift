import HearthModel

/// A large map of a stored document. Rules usually read few members of it, so each member is decoded when it is read.
///
/// It belongs to the document and to the evaluation of rules about it.
final class LargeMap {
    private let source: any LargeFields
    /// The path of the map in its document.
    private let path: [String]
    /// By the bytes of their names: to Swift, two Unicode spellings of "é" are one string.
    private var members: [ByteKey: RuleValue?] = [:]
    private var all: MapValue?

    init(_ source: any LargeFields, at path: [String] = []) {
        self.source = source
        self.path = path
    }

    func member(_ name: String) throws(Status) -> RuleValue? {
        if let all { return all[name].map { RuleValue($0) } }
        let key = ByteKey(Array(name.utf8))
        if let known = members[key] { return known }
        let found: RuleValue? =
            switch try source.member(path + [name]) {
            case nil: nil
            case .value(let value): RuleValue(value)
            case .largeMap: .map(.large(LargeMap(source, at: path + [name])))
            }
        members[key] = .some(found)
        return found
    }

    func whole() throws(Status) -> MapValue {
        if let all { return all }
        let map = try source.map(at: path)
        all = map
        return map
    }
}

/// The fields of a document that is too large to be decoded for one of them.
package protocol LargeFields: AnyObject {
    /// The value at a non-empty path; nil when there is none.
    func member(_ path: [String]) throws(Status) -> LargeFieldsMember?
    /// The whole map at a path; at an empty path, all fields.
    func map(at path: [String]) throws(Status) -> MapValue
}

package enum LargeFieldsMember {
    case value(Value)
    /// A map that was not decoded.
    case largeMap
}
