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
            throw .invalidArgument("The index configuration is not a JSON object: \(error.message)")
        }
        indexes = []
        for (index, member) in try Self.list(root, "indexes", "").enumerated() {
            let location = "indexes[\(index)]"
            let object = try Self.object(member, location)
            let group = try Self.string(object, "collectionGroup", location + ".")
            var segments: [FieldIndex.Segment] = []
            for (position, member) in try Self.list(object, "fields", location + ".").enumerated() {
                let location = "\(location).fields[\(position)]"
                segments.append(try Self.segment(Self.object(member, location), location))
            }
            if segments.isEmpty { throw Self.invalid("\(location).fields", "must not be empty") }
            indexes.append(FieldIndex(collectionGroup: group, segments: segments))
        }
    }

    private static func segment(_ object: StructMessage, _ location: String) throws(Status) -> FieldIndex.Segment {
        let string = try string(object, "fieldPath", location + ".")
        let path: FieldPath
        do throws(Status) {
            path = try FieldPath(parsing: string)
        } catch {
            throw invalid(location + ".fieldPath", "cannot be read: \(error.message)")
        }
        if isString(object["arrayConfig"], "CONTAINS") { return FieldIndex.Segment(path: path, kind: .contains) }
        _ = try self.string(object, "order", location + ".")
        let isAscending = isString(object["order"], "ASCENDING")
        return FieldIndex.Segment(path: path, kind: isAscending ? .ascending : .descending)
    }

    private static func isString(_ member: StructMessage.Member?, _ expected: String) -> Bool {
        if case .string(let string)? = member { UTF8Order.equal(string, expected) } else { false }
    }

    private static func list(
        _ object: StructMessage, _ name: String, _ location: String
    ) throws(Status) -> [StructMessage.Member] {
        guard case .list(let members)? = object[name] else { throw invalid(location + name, "must be a list") }
        return members
    }

    private static func string(_ object: StructMessage, _ name: String, _ location: String) throws(Status) -> String {
        guard case .string(let string)? = object[name] else { throw invalid(location + name, "must be a string") }
        return string
    }

    private static func object(_ member: StructMessage.Member, _ location: String) throws(Status) -> StructMessage {
        guard case .object(let object) = member else { throw invalid(location, "must be an object") }
        return object
    }

    private static func invalid(_ location: String, _ rule: String) -> Status {
        .invalidArgument("The index configuration cannot be used: \(location) \(rule).")
    }
}
