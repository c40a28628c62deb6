import HearthEvents
import HearthHost
import HearthModel

/// What an administrator asks for: which events go where, and how. Under `triggers` in `hearth.json`, or the body of
/// `PUT /hearth/v1/triggers/NAME`:
///
///     {
///       "event": "google.cloud.firestore.document.v1.written",
///       "document": "restaurants/{restId}/ratings/{ratingId}",
///       "url": "http://127.0.0.1:8081/"
///     }
package struct TriggerDefinition: Sendable, Equatable {
    package enum Source: String, Sendable { case file, api, emulator }

    package let name: String
    /// Of the first definition of the trigger, and of this one; see `TriggerService.change`.
    var serial: UInt64 = 0
    var revision: UInt64 = 0
    package let source: Source
    package let type: EventType
    package let pattern: EventPattern
    /// Of Cloud Firestore; nil for all.
    package let project: String?
    package let database: String?
    /// Of namespaces of the Realtime Database.
    package let instance: InstancePattern
    package let target: EventSender.Target
    package private(set) var form: EventRequest.Form
    package let terms: DeliveryTerms
    /// Events of commits that are older are not repeated.
    package let maxAgeSeconds: Int
    /// As it was written, for administrators: a JSON object.
    package let members: [UInt8]

    package var id: TriggerID { TriggerID(name: name, serial: serial) }

    private static let known = [
        "event", "document", "ref", "project", "database", "instance", "url", "secretFile", "mode", "content", "order",
        "concurrency", "timeout", "retry", "paused",
    ]
    private static let knownOfRetry = ["minBackoff", "maxBackoff", "maxAge", "maxAttempts"]

    package static let nameSizeBytesMax = 63

    /// Whether a string may be a trigger's name: `[a-zA-Z][a-zA-Z0-9_-]{0,62}`.
    package static func isName(_ string: String) -> Bool {
        let bytes = Array(string.utf8)
        guard let first = bytes.first, bytes.count <= nameSizeBytesMax, isLetter(first) else { return false }
        return bytes.allSatisfy {
            isLetter($0) || isDigit($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

    /// - Parameters:
    ///   - defaultProject: the server's.
    ///   - secret: reads a file.
    /// - Throws: INVALID_ARGUMENT that names the member.
    package init(
        name: String, _ value: ConfigurationValue, source: Source, defaultProject: String,
        secret: (String) throws(Status) -> [UInt8]
    ) throws(Status) {
        guard Self.isName(name) else {
            throw value.failure(
                "A trigger's name is a letter and at most \(Self.nameSizeBytesMax - 1) letters, digits, _ and -.")
        }
        for member in try value.members() where !Self.known.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: Self.known))")
        }
        self.name = name
        self.source = source
        var members: [UInt8] = []
        value.appendJSON(to: &members)
        self.members = members
        let event = try value.required("event")
        type = try EventType(event)
        pattern = try Self.pattern(value, type)
        project = try Self.exact(value, "project", type, defaultProject)
        database = try Self.exact(value, "database", type, DatabaseName.defaultDatabase)
        instance = try Self.instance(value, type)
        var target = EventSender.Target(
            url: try Self.url(value), secret: try Self.secret(value, secret),
            timeoutMilliseconds: try TriggerDuration.member("timeout", of: value, 0.001...3600)
                .map { Int($0 * 1000) } ?? 60_000)
        form = try Self.form(value, type)
        (terms, maxAgeSeconds) = try Self.terms(value)
        // An event that has only one attempt must not lose it because an idle connection ends.
        target.opensConnections = !terms.repeatsAnswers || terms.attemptsMax == 1
        self.target = target
    }

    /// A trigger that Firebase's tools have registered, whose events go to their functions emulator.
    ///
    /// An attempt that was answered is repeated five times, soon: whoever develops a function wants to see what it throws, and
    /// not to be called until tomorrow. While nothing answers, events wait for an hour.
    /// - Parameters:
    ///   - name: one that no file can have, since tools choose the key.
    ///   - registration: what the tools have sent.
    init(
        emulated name: String, _ type: EventType, _ pattern: EventPattern, project: String?, database: String?,
        instance: InstancePattern = .all, url: String, registration: ConfigurationValue
    ) {
        self.name = name
        source = .emulator
        self.type = type
        self.pattern = pattern
        self.project = project
        self.database = database
        self.instance = instance
        target = EventSender.Target(url: url)
        form = EventRequest.Form(isEmulated: true)
        var terms = DeliveryTerms()
        terms.minBackoffNanoseconds = 200_000_000
        terms.attemptsMax = 6
        self.terms = terms
        maxAgeSeconds = 3600
        var members: [UInt8] = []
        registration.appendJSON(to: &members, without: TriggerReport.ownMembers)
        self.members = members
    }

    /// The same with events as one JSON object each.
    var structured: TriggerDefinition {
        var copy = self
        copy.form = EventRequest.Form(isStructured: true, isJSON: true)
        return copy
    }

    /// Whether an event that was given up is kept: those of Firebase's tools live as long as the process.
    var keepsDeadLetters: Bool { source != .emulator }

    private static func pattern(_ value: ConfigurationValue, _ type: EventType) throws(Status) -> EventPattern {
        let (name, other) = type.product == .firestore ? ("document", "ref") : ("ref", "document")
        if let other = try value.member(other) { throw other.failure("An event of this type has \"\(name)\".") }
        let member = try value.required(name)
        return try member.located { () throws(Status) in
            try EventPattern(try member.string(), of: type.product == .firestore ? .documents : .locations)
        }
    }

    /// A name, or `*` for all.
    private static func exact(
        _ value: ConfigurationValue, _ name: String, _ type: EventType, _ usual: String
    ) throws(Status) -> String? {
        guard let member = try value.member(name) else { return usual }
        if type.product != .firestore { throw member.failure("Events of the Realtime Database have \"instance\".") }
        let string = try member.string()
        if string.isEmpty { throw member.failure("A name is not empty.") }
        return string == "*" ? nil : string
    }

    private static func instance(_ value: ConfigurationValue, _ type: EventType) throws(Status) -> InstancePattern {
        guard let member = try value.member("instance") else { return .all }
        if type.product == .firestore { throw member.failure("Events of Cloud Firestore have \"database\".") }
        return try member.located { () throws(Status) in try InstancePattern(try member.string()) }
    }

    private static func url(_ value: ConfigurationValue) throws(Status) -> String {
        let member = try value.required("url")
        let string = try member.string()
        if let fault = TriggerURL.fault(of: string) { throw member.failure(fault) }
        return string
    }

    private static func secret(
        _ value: ConfigurationValue, _ read: (String) throws(Status) -> [UInt8]
    ) throws(Status) -> String? {
        guard let member = try value.member("secretFile") else { return nil }
        var bytes = try member.located { () throws(Status) in try read(try member.string()) }
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        if bytes.isEmpty { throw member.failure("The file has no secret.") }
        if bytes.contains(where: { $0 < 0x20 || $0 >= 0x7f }) {
            throw member.failure("The secret has bytes that a header can't have.")
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func form(_ value: ConfigurationValue, _ type: EventType) throws(Status) -> EventRequest.Form {
        let mode = try choice(value, "mode", ["binary", "structured"])
        let content = try choice(value, "content", ["protobuf", "json"])
        if type.product == .database, content == "protobuf", let member = try value.member("content") {
            throw member.failure("Events of the Realtime Database are JSON.")
        }
        return EventRequest.Form(isStructured: mode == "structured", isJSON: content == "json")
    }

    /// One of some words; the first is the usual one.
    private static func choice(
        _ value: ConfigurationValue, _ name: String, _ words: [String]
    ) throws(Status) -> String {
        guard let member = try value.member(name) else { return words[0] }
        let word = try member.string()
        guard words.contains(word) else {
            throw member.failure("Expected \(words.map { "\"\($0)\"" }.joined(separator: " or ")).")
        }
        return word
    }

    private static func terms(_ value: ConfigurationValue) throws(Status) -> (DeliveryTerms, maxAgeSeconds: Int) {
        var terms = DeliveryTerms()
        terms.isOrdered = try choice(value, "order", ["document", "none"]) == "document"
        if let member = try value.member("concurrency") { terms.concurrency = try member.integer(1...256) }
        if let member = try value.member("paused") { terms.isPaused = try member.boolean() }
        var maxAge = 86_400
        guard let retry = try value.member("retry") else { return (terms, maxAge) }
        if case .boolean(let isWanted) = retry.content {
            terms.repeatsAnswers = isWanted
            return (terms, maxAge)
        }
        for member in try retry.members() where !knownOfRetry.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: knownOfRetry))")
        }
        if let seconds = try TriggerDuration.member("minBackoff", of: retry, 0.001...86_400) {
            terms.minBackoffNanoseconds = UInt64(seconds * 1e9)
            terms.maxBackoffNanoseconds = max(terms.maxBackoffNanoseconds, terms.minBackoffNanoseconds)
        }
        if let seconds = try TriggerDuration.member("maxBackoff", of: retry, 0.001...86_400) {
            terms.maxBackoffNanoseconds = UInt64(seconds * 1e9)
            if terms.maxBackoffNanoseconds < terms.minBackoffNanoseconds {
                throw retry.failure("\"maxBackoff\" is less than \"minBackoff\".")
            }
        }
        if let seconds = try TriggerDuration.member("maxAge", of: retry, 1...604_800) { maxAge = Int(seconds) }
        if let member = try retry.member("maxAttempts") { terms.attemptsMax = try member.integer(1...1_000_000) }
        return (terms, maxAge)
    }

    // MARK: What it is for

    package func isFor(_ name: DatabaseName) -> Bool {
        type.product == .firestore && project.map { UTF8Order.equal($0, name.project) } ?? true
            && database.map { UTF8Order.equal($0, name.database) } ?? true
    }

    package func isFor(namespace: String) -> Bool { type.product == .database && instance.matches(namespace) }
}

extension EventType {
    /// - Throws: INVALID_ARGUMENT for a name that is none, with the one that may be meant.
    init(_ value: ConfigurationValue) throws(Status) {
        let name = try value.string()
        do throws(Status) {
            try self.init(name)
        } catch {
            let known = Self.names
            // The last word alone, as SDKs' documentation has it.
            let nearest = Spelling.nearest(to: name, among: known) ?? known.first { $0.hasSuffix(".\(name)") }
            throw value.failure(nearest.map { error.message.dropLast() + "; did you mean \"\($0)\"?" } ?? error.message)
        }
    }
}

/// Which namespaces of the Realtime Database a trigger is for: a name, in which one star matches any part.
package struct InstancePattern: Sendable, Hashable {
    private let prefix: [UInt8]
    /// Nil without a star.
    private let suffix: [UInt8]?

    package static let all = InstancePattern(prefix: [], suffix: [])

    private init(prefix: [UInt8], suffix: [UInt8]?) {
        self.prefix = prefix
        self.suffix = suffix
    }

    /// - Throws: INVALID_ARGUMENT.
    package init(_ string: String) throws(Status) {
        let parts = string.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
        if string.isEmpty || parts.count > 2 {
            throw .invalidArgument("A pattern of namespaces is a name, or has one star.")
        }
        self.init(prefix: Array(parts[0]), suffix: parts.count > 1 ? Array(parts[1]) : nil)
    }

    /// The only one that matches; nil when there may be others.
    var only: String? { suffix == nil ? String(decoding: prefix, as: UTF8.self) : nil }

    package func matches(_ namespace: String) -> Bool {
        let bytes = Array(namespace.utf8)
        guard let suffix else { return bytes == prefix }
        return bytes.count >= prefix.count + suffix.count && bytes.starts(with: prefix)
            && bytes.suffix(suffix.count).elementsEqual(suffix)
    }
}

/// A duration as a string: a number and `ms`, `s`, `m`, `h` or `d`.
enum TriggerDuration {
    private static let units: [(name: String, seconds: Double)] = [
        ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400),
    ]

    /// In seconds; nil without the member.
    static func member(
        _ name: String, of value: ConfigurationValue, _ range: ClosedRange<Double>
    ) throws(Status) -> Double? {
        guard let member = try value.member(name) else { return nil }
        guard let seconds = seconds(try member.string()) else {
            throw member.failure("Expected a number and ms, s, m, h or d, as \"30s\".")
        }
        guard range.contains(seconds) else {
            throw member.failure("Expected from \(string(range.lowerBound)) to \(string(range.upperBound)).")
        }
        return seconds
    }

    static func seconds(_ string: String) -> Double? {
        let number = string.utf8.prefix {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
        }
        // Of bytes, since a combining character after a digit would be dropped with it.
        let unit = String(Substring(string.utf8.dropFirst(number.count)))
        guard let value = Double(String(decoding: Array(number), as: UTF8.self)),
            let seconds = units.first(where: { $0.name == unit })?.seconds
        else { return nil }
        return value * seconds
    }

    private static func string(_ seconds: Double) -> String {
        let unit = units.last { seconds >= $0.seconds && (seconds / $0.seconds).rounded() == seconds / $0.seconds }
        guard let unit else { return "\(Int((seconds * 1000).rounded()))ms" }
        return "\(Int(seconds / unit.seconds))\(unit.name)"
    }
}

/// The URL of an endpoint.
package enum TriggerURL {
    static let sizeBytesMax = 4096

    /// Why a string can't be one; nil when it can.
    package static func fault(of string: String) -> String? {
        let bytes = Array(string.utf8)
        guard let scheme = ["http://", "https://"].first(where: { string.lowercased().hasPrefix($0) }) else {
            return "Expected a URL of http or https."
        }
        if bytes.count > sizeBytesMax { return "The URL is longer than \(sizeBytesMax) bytes." }
        if bytes.contains(where: { $0 <= 0x20 || $0 >= 0x7f }) {
            return "The URL has bytes that must be percent-encoded."
        }
        if bytes.contains(UInt8(ascii: "#")) { return "A URL here has no fragment." }
        let authority = bytes.dropFirst(scheme.utf8.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        if authority.contains(UInt8(ascii: "@")) { return "A URL here has no credentials; use \"secretFile\"." }
        let host = authority.first == UInt8(ascii: "[") ? authority : authority.prefix { $0 != UInt8(ascii: ":") }
        if host.isEmpty { return "The URL has no host." }
        return portFault(of: authority)
    }

    /// libcurl refuses some of them, and takes the last bits of others.
    private static func portFault(of authority: ArraySlice<UInt8>) -> String? {
        var rest = authority
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return "The URL's address has no end." }
            rest = authority[(end + 1)...]
            if let next = rest.first, next != UInt8(ascii: ":") { return "The URL has no port behind its address." }
        }
        guard let colon = rest.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let port = rest[(colon + 1)...]
        let isNumber = !port.isEmpty && port.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        if isNumber, let number = Int(String(decoding: port, as: UTF8.self)), (1...65_535).contains(number) {
            return nil
        }
        return "The URL's port is not a number from 1 to 65535."
    }
}
