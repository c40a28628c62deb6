import HearthDocuments
import HearthEvents
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// What a reader of the change feed asks for.
package struct ChangeParameters: Sendable {
    package enum Start: Sendable {
        /// Behind the newest commit.
        case now
        case after(ChangeToken)
        case since(Timestamp)
        /// All documents first.
        case snapshot
    }

    package enum Wait: Sendable, Equatable {
        /// Without a change; 0 ends with what there is at the beginning.
        case milliseconds(Int)
        case forever
    }

    package enum Form: Sendable {
        /// A line of JSON each.
        case lines
        /// Server-sent events.
        case events
    }

    package var start = Start.now
    package var pattern: EventPattern?
    package var hasBefore = true
    package var wait = Wait.milliseconds(0)
    package var linesMax: Int?
    package var form = Form.lines

    /// The documents of which a commit may have lines, as narrow as the hub distinguishes.
    package var scope: WatchScope {
        guard let pattern else { return .everything }
        let literals = pattern.literalPrefix
        switch (pattern.segmentCount, pattern.collectionID) {
        case (literals.count, _): return .document(DocumentKey.encode(ResourcePath(literals)))
        case (literals.count + 1, _): return .collection(DocumentKey.collectionPrefix(ResourcePath(literals)))
        case (_, let id?): return .collectionGroup(Array(id.utf8))
        default: return .everything
        }
    }

    private static let names = ["after", "since", "snapshot", "document", "before", "wait", "limit"]
    private static let waitSecondsMax = 7 * 86_400

    /// - Parameters:
    ///   - query: of the URL.
    ///   - lastEventID: the field with which a browser goes on; it comes before what the URL names as the beginning.
    ///   - accept: the field of this name.
    /// - Throws: INVALID_ARGUMENT that names the parameter.
    package init(query: String?, lastEventID: String?, accept: String?) throws(Status) {
        guard let parameters = URLCoding.parameters(query) else {
            throw .invalidArgument("The query of the URL can't be decoded.")
        }
        var values: [String: String] = [:]
        for (name, value) in parameters {
            guard let known = Self.names.first(where: { UTF8Order.equal($0, name) }) else {
                throw .invalidArgument(
                    "The parameter \"\(name)\" is unknown\(Spelling.hint(for: name, among: Self.names))")
            }
            if values[known] != nil { throw .invalidArgument("The parameter \"\(known)\" is given twice.") }
            values[known] = value
        }
        try readStart(values, lastEventID)
        if let document = values["document"] {
            pattern = try Self.named("document") { () throws(Status) in try EventPattern(document, of: .documents) }
        }
        hasBefore = try Self.boolean("before", values) ?? true
        if let wait = values["wait"] { self.wait = try Self.wait(wait) }
        if let limit = values["limit"] {
            guard let count = Self.number(limit), count > 0 else {
                throw Self.wrong("limit", limit, "a number of lines, at least 1")
            }
            linesMax = count
        }
        if let accept, accept.contains("text/event-stream") { form = .events }
    }

    private mutating func readStart(_ values: [String: String], _ lastEventID: String?) throws(Status) {
        let isSnapshot = try Self.boolean("snapshot", values) ?? false
        var starts: [String] = []
        if let after = values["after"] {
            start = .after(try Self.named("after") { () throws(Status) in try ChangeToken(after) })
            starts.append("after")
        }
        if let since = values["since"] {
            guard let instant = RFC3339.parse(since),
                let time = Timestamp(seconds: instant.seconds, nanoseconds: Int64(instant.nanoseconds))
            else { throw Self.wrong("since", since, "a time such as 2026-11-22T19:17:23.279643Z") }
            start = .since(time)
            starts.append("since")
        }
        if isSnapshot {
            start = .snapshot
            starts.append("snapshot")
        }
        if starts.count > 1 {
            throw .invalidArgument(
                "The parameters \"\(starts[0])\" and \"\(starts[1])\" exclude each other: both say where to begin.")
        }
        if let lastEventID, !lastEventID.isEmpty {
            do throws(Status) {
                start = .after(try ChangeToken(lastEventID))
            } catch {
                throw .invalidArgument("The field last-event-id: \(error.message)")
            }
        }
    }

    private static func named<Result>(_ name: String, _ body: () throws(Status) -> Result) throws(Status) -> Result {
        do throws(Status) {
            return try body()
        } catch {
            throw .invalidArgument("The parameter \"\(name)\": \(error.message)")
        }
    }

    private static func wrong(_ name: String, _ value: String, _ expected: String) -> Status {
        .invalidArgument("The parameter \"\(name)\" is \"\(value)\"; expected \(expected).")
    }

    private static func boolean(_ name: String, _ values: [String: String]) throws(Status) -> Bool? {
        switch values[name] {
        case nil: return nil
        case "true": return true
        case "false": return false
        case let value?: throw wrong(name, value, "true or false")
        }
    }

    /// Digits alone; nil when it isn't one or too large.
    private static func number(_ string: String) -> Int? {
        string.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(string) : nil
    }

    private static func wait(_ string: String) throws(Status) -> Wait {
        if string == "forever" { return .forever }
        let parts = string.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let fraction = parts.count > 1 ? String(parts[1]) : "0"
        guard let seconds = number(String(parts[0])), seconds <= waitSecondsMax, number(fraction) != nil,
            fraction.utf8.count <= 9
        else { throw wrong("wait", string, "a number of seconds up to \(waitSecondsMax), or forever") }
        let digits = fraction.utf8.prefix(3).map { Int($0 - UInt8(ascii: "0")) } + [0, 0]
        return .milliseconds(seconds * 1000 + digits[0] * 100 + digits[1] * 10 + digits[2])
    }
}
