import HearthModel
import HearthWire

/// The error of a query without its index, in production's words, for `--require-indexes`.
package enum MissingIndex {
    package static func status(_ index: IndexDefinition, database: DatabaseName) -> Status {
        let payload = Self.payload(index, database: database)
        let page =
            database.database == DatabaseName.defaultDatabase
            ? "firestore/indexes" : "firestore/databases/\(database.database)/indexes"
        return .failedPrecondition(
            "The query requires an index. You can create it here: https://console.firebase.google.com/v1/r/project/"
                + "\(database.project)/\(page)?create_composite=\(payload) or add to firestore.indexes.json: "
                + definitionJSON(index))
    }

    /// The entry of `firestore.indexes.json` that defines an index.
    package static func definitionJSON(_ index: IndexDefinition) -> String {
        let fields = index.fields.map { field in
            let kind =
                switch field.kind {
                case .ascending: "\"order\": \"ASCENDING\""
                case .descending: "\"order\": \"DESCENDING\""
                case .contains: "\"arrayConfig\": \"CONTAINS\""
                case .vector(let dimension): "\"vectorConfig\": {\"dimension\": \(dimension), \"flat\": {}}"
                }
            return "{\"fieldPath\": \"\(escaped(field.path.string))\", \(kind)}"
        }
        return "{\"collectionGroup\": \"\(escaped(index.collectionID))\", \"queryScope\": \"\(index.scope.rawValue)\", "
            + "\"fields\": [\(fields.joined(separator: ", "))]}"
    }

    private static func escaped(_ string: String) -> String {
        var result = ""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 0x20: result += "?"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// The unpadded base64url form of a google.firestore.admin.v1.Index that describes the missing index.
    static func payload(_ index: IndexDefinition, database: DatabaseName) -> String {
        var bytes: [UInt8] = []
        let name = "\(database.string)/collectionGroups/\(index.collectionID)/indexes/_"
        appendField(1, Array(name.utf8), to: &bytes)
        bytes += [0x10, index.scope == .collection ? 1 : 2]
        var fields = index.fields
        fields.append(IndexField(path: .documentName, kind: index.nameDescending ? .descending : .ascending))
        for field in fields {
            var message: [UInt8] = []
            appendField(1, Array(field.path.string.utf8), to: &message)
            switch field.kind {
            case .ascending: message += [0x10, 1]
            case .descending: message += [0x10, 2]
            case .contains: message += [0x18, 1]
            case .vector: break
            }
            appendField(3, message, to: &bytes)
        }
        return base64URL(bytes)
    }

    private static func appendField(_ number: UInt8, _ content: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(number << 3 | 2)
        var length = content.count
        while length > 0x7F {
            bytes.append(UInt8(length & 0x7F) | 0x80)
            length >>= 7
        }
        bytes.append(UInt8(length))
        bytes += content
    }

    private static func base64URL(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".unicodeScalars)
        var string = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << UInt32(8 * (3 - group.count))
            for index in 0...group.count {
                string.unicodeScalars.append(alphabet[Int(bits >> UInt32(18 - 6 * index)) & 63])
            }
        }
        return string
    }
}
