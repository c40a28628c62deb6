import HearthHost
import HearthModel
import HearthWire

/// The identity of a ruleset in its project, and its age. Never changes.
struct RulesetKey: Sendable, Hashable, Comparable {
    let createTime: Timestamp
    /// A UUID.
    let id: String

    private static let suffix = ".ruleset"

    init(createTime: Timestamp, id: String) {
        self.createTime = createTime
        self.id = id
    }

    /// The name of the ruleset's file: the time in sixteen hexadecimal digits, then the id. A folder's list of names is
    /// thus all that a list of rulesets needs.
    var fileName: String { "\(PagedList.digits(createTime))-\(id)\(Self.suffix)" }

    /// Nil for the name of another file.
    init?(fileName: String) {
        let bytes = Array(fileName.utf8)
        guard fileName.hasSuffix(Self.suffix), bytes.count == 16 + 1 + 36 + Self.suffix.utf8.count,
            bytes[16] == UInt8(ascii: "-"),
            let time = Int64(String(decoding: bytes[..<16], as: UTF8.self), radix: 16),
            // The next ruleset's time is greater.
            0...Timestamp.microsecondsRange.upperBound ~= time
        else { return nil }
        let id = String(decoding: bytes[17..<53], as: UTF8.self)
        guard Self.isID(id) else { return nil }
        self.init(createTime: Timestamp(microseconds: time), id: id)
    }

    /// Whether a string has the form of an id.
    static func isID(_ id: String) -> Bool {
        let groups = id.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return groups.map(\.count) == [8, 4, 4, 4, 12]
            && groups.joined().allSatisfy { byte in
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
            }
    }

    static func < (lhs: RulesetKey, rhs: RulesetKey) -> Bool {
        (lhs.createTime, lhs.id) < (rhs.createTime, rhs.id)
    }
}

/// A ruleset of a project.
///
/// Its file is a JSON object with `source` and `attachmentPoint`, as in the resource of Google's API.
struct StoredRuleset: Sendable, Equatable {
    let key: RulesetKey
    let source: RulesetSource
    /// What Firebase's tools say the ruleset is for; of no meaning here.
    let attachmentPoint: String?

    init(key: RulesetKey, source: RulesetSource, attachmentPoint: String?) {
        self.key = key
        self.source = source
        self.attachmentPoint = attachmentPoint
    }

    /// - Throws: INVALID_ARGUMENT for what is no ruleset's file.
    init(key: RulesetKey, file: [UInt8]) throws(Status) {
        let object = try RequestObject(body: file, known: Self.members)
        guard let source = try object.object("source", known: RulesetSource.members) else {
            throw .invalidArgument("It has no source.")
        }
        self.init(key: key, source: try RulesetSource(source), attachmentPoint: try object.string("attachmentPoint"))
    }

    static let members = ["source", "attachmentPoint"]

    var file: [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"source\":")
        source.append(to: &writer)
        appendAttachmentPoint(to: &writer)
        writer.raw("}\n")
        return writer.bytes
    }

    private func appendAttachmentPoint(to writer: inout JSONWriter) {
        guard let attachmentPoint else { return }
        writer.raw(",\"attachmentPoint\":")
        writer.string(attachmentPoint)
    }

    /// The resource of Google's API.
    func append(project: String, to writer: inout JSONWriter) {
        Self.begin(key, project: project, to: &writer)
        writer.raw(",\"source\":")
        source.append(to: &writer)
        appendAttachmentPoint(to: &writer)
        writer.raw("}")
    }

    /// As in lists, without the source.
    static func append(_ key: RulesetKey, project: String, to writer: inout JSONWriter) {
        begin(key, project: project, to: &writer)
        writer.raw("}")
    }

    private static func begin(_ key: RulesetKey, project: String, to writer: inout JSONWriter) {
        writer.raw("{\"name\":")
        writer.string("projects/\(project)/rulesets/\(key.id)")
        writer.raw(",\"createTime\":")
        writer.time(key.createTime)
        // Sources without it are refused.
        writer.raw(",\"metadata\":{\"services\":[\"cloud.firestore\"]}")
    }
}

extension JSONWriter {
    /// A time as a string in the form of RFC 3339.
    mutating func time(_ time: Timestamp) {
        string(RFC3339.format(seconds: time.seconds, nanoseconds: Int32(truncatingIfNeeded: time.nanoseconds)))
    }
}
