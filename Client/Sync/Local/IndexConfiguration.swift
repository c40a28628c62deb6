import HearthModel
import HearthWire

/// The argument of `setIndexConfiguration`, in the format of `firestore.indexes.json`:
///
///     {"indexes": [{"collectionGroup": "c",
///                   "fields": [{"fieldPath": "a.b", "order": "ASCENDING"},
///                              {"fieldPath": "tags", "arrayConfig": "CONTAINS"}]}]}
///
/// All other members (`queryScope`, `fieldOverrides`) apply to servers and are ignored.
package struct ClientIndexConfiguration: Sendable {
    package var indexes: [FieldIndex]

    /// - Throws: `INVALID_ARGUMENT`, with the location of the first member that cannot be read.
    package init(json string: String) throws(Status) {
        let root: StructMessage
        do throws(Status) {
            root = try StructMessage(json: string)
        } catch {
            throw .invalidArgument("The index configuration is no JSON object: \(error.message)")
        }
        indexes = []
        for (index, member) in try Self.list(root, "indexes", "").enumerated() {
            let place = "indexes[\(index)]"
            let object = try Self.object(member, place)
            let group = try Self.string(object, "collectionGroup", place + ".")
            var segments: [FieldIndex.Segment] = []
            for (position, member) in try Self.list(object, "fields", place + ".").enumerated() {
                let place = "\(place).fields[\(position)]"
                segments.append(try Self.segment(Self.object(member, place), place))
            }
            if segments.isEmpty { throw Self.invalid("\(place).fields", "must not be empty") }
            indexes.append(FieldIndex(collectionGroup: group, segments: segments))
        }
    }

    private static func segment(_ object: StructMessage, _ place: String) throws(Status) -> FieldIndex.Segment {
        let string = try string(object, "fieldPath", place + ".")
        let path: FieldPath
        do throws(Status) {
            path = try FieldPath(parsing: string)
        } catch {
            throw invalid(place + ".fieldPath", "cannot be read: \(error.message)")
        }
        if isString(object["arrayConfig"], "CONTAINS") { return FieldIndex.Segment(path: path, kind: .contains) }
        _ = try self.string(object, "order", place + ".")
        let isAscending = isString(object["order"], "ASCENDING")
        return FieldIndex.Segment(path: path, kind: isAscending ? .ascending : .descending)
    }

    private static func isString(_ member: StructMessage.Member?, _ expected: String) -> Bool {
        if case .string(let string)? = member { UTF8Order.equal(string, expected) } else { false }
    }

    private static func list(
        _ object: StructMessage, _ name: String, _ place: String
    ) throws(Status) -> [StructMessage.Member] {
        guard case .list(let members)? = object[name] else { throw invalid(place + name, "must be a list") }
        return members
    }

    private static func string(_ object: StructMessage, _ name: String, _ place: String) throws(Status) -> String {
        guard case .string(let string)? = object[name] else { throw invalid(place + name, "must be a string") }
        return string
    }

    private static func object(_ member: StructMessage.Member, _ place: String) throws(Status) -> StructMessage {
        guard case .object(let object) = member else { throw invalid(place, "must be an object") }
        return object
    }

    private static func invalid(_ place: String, _ rule: String) -> Status {
        .invalidArgument("The index configuration cannot be used: \(place) \(rule).")
    }
}
