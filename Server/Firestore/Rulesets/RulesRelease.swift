import HearthModel
import HearthWire

/// A release: the name by which a ruleset is in force.
struct RulesRelease: Sendable, Equatable {
    /// Behind `projects/P/releases/`; may have slashes.
    let name: String
    /// The id of a ruleset of the same project.
    var ruleset: String
    var createTime: Timestamp
    var updateTime: Timestamp

    private static let firestore = "cloud.firestore"

    /// The database that a release of this name is for; nil when it has no effect here, such as one for Cloud Storage.
    static func database(ofName name: String) -> String? {
        if name == firestore { return DatabaseName.defaultDatabase }
        return name.hasPrefix(firestore + "/") ? String(name.dropFirst(firestore.utf8.count + 1)) : nil
    }

    static func name(ofDatabase database: String) -> String {
        database == DatabaseName.defaultDatabase ? firestore : "\(firestore)/\(database)"
    }

    var database: String? { Self.database(ofName: name) }

    /// - Throws: INVALID_ARGUMENT for a name that no release has.
    static func check(name: String) throws(Status) {
        let segments = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isValid = segments.allSatisfy { segment in
            !segment.isEmpty && !segment.elementsEqual(".".utf8) && !segment.elementsEqual("..".utf8)
                && segment.allSatisfy(isPlain)
        }
        guard isValid, name.utf8.count <= Limits.rulesNamesBytesMax else {
            throw .invalidArgument(
                "Invalid name of a release \"\(name.prefix(200))\": expected at most \(Limits.rulesNamesBytesMax) letters, "
                    + "digits, \".\", \"-\" and \"_\", in parts that are separated by slashes.")
        }
        if name.hasPrefix(firestore + "/"), segments.count != 2 {
            throw .invalidArgument(
                "Invalid name of a release \"\(name)\": expected \(firestore) for the database (default), or "
                    + "\(firestore)/DATABASE.")
        }
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// The resource of Google's API.
    func append(project: String, to writer: inout JSONWriter) {
        writer.raw("{\"name\":")
        writer.string("projects/\(project)/releases/\(name)")
        writer.raw(",\"rulesetName\":")
        writer.string("projects/\(project)/rulesets/\(ruleset)")
        writer.raw(",\"createTime\":")
        writer.time(createTime)
        writer.raw(",\"updateTime\":")
        writer.time(updateTime)
        writer.raw("}")
    }
}
