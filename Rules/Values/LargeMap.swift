import HearthModel

/// A large map of a stored document. Rules mostly look at few members of one, so each is decoded when it is read.
///
/// Belongs to the document, and to whoever evaluates rules about it.
final class LargeMap {
    private let source: any LargeFields
    /// Of the map in its document.
    private let path: [String]
    /// By the bytes of their names: to Swift the two spellings of "é" are one.
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

/// The fields of a document too large to be decoded for the sake of one of them.
package protocol LargeFields: AnyObject {
    /// What is at a path of at least one name; nil when there is nothing.
    func member(_ path: [String]) throws(Status) -> LargeFieldsMember?
    /// The map at a path, whole; that of all fields at an empty one.
    func map(at path: [String]) throws(Status) -> MapValue
}

package enum LargeFieldsMember {
    case value(Value)
    /// A map that wasn't decoded.
    case largeMap
}
