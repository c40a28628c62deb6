import HearthHost
import HearthModel
import HearthTree

/// The parameters of a REST request on the Realtime Database. Unknown ones are ignored; flags are set by the value
/// `true`. Source: the REST reference of the Realtime Database.
struct RealtimeParameters: Sendable {
    enum Form: Equatable, Sendable {
        case compact
        case pretty
        /// No body.
        case silent
    }

    /// The limit of the time that a write may keep the server busy, as the server estimates it.
    enum WriteSize: String, Sendable, CaseIterable {
        case tiny, small, medium, large, unlimited

        /// Nil for no bound.
        var seconds: Int? {
            switch self {
            case .tiny: 1
            case .small: 10
            case .medium: 30
            case .large: 60
            case .unlimited: nil
            }
        }
    }

    var namespace: String?
    var credential = RealtimeCredential.none
    var override: RealtimeOverride?
    var form = Form.compact
    var isShallow = false
    var isExport = false
    /// Of a write: triggers get no event of it.
    var disablesTriggers = false
    /// The name of the function that receives the answer.
    var callback: String?
    /// The name of the file for the answer.
    var download: String?
    var timeoutMilliseconds = Self.timeoutMillisecondsMax
    /// Nil when the request does not contain it: then nothing is estimated.
    var writeSize: WriteSize?
    var methodOverride: String?
    var wantsEvents = false
    /// Of a socket: the session of the client's last connection.
    var formerSession: String?
    /// Of rules: check them only.
    var isDryRun = false
    /// Of rules: without comments.
    var isStrict = false
    /// Those of a query, in order.
    private var queryParameters: [(name: String, value: String)] = []

    static let timeoutMillisecondsMax = 15 * 60 * 1000
    private static let queryNames: Set<String> = [
        "orderBy", "startAt", "startAfter", "endAt", "endBefore", "equalTo", "limitToFirst", "limitToLast",
    ]

    init() {}

    /// - Parameter string: the part of the address after `?`.
    /// - Throws: INVALID_ARGUMENT with the service's message.
    init(_ string: String?) throws(Status) {
        guard let parameters = URLCoding.parameters(string) else {
            throw .invalidArgument("The parameters of the address can't be decoded.")
        }
        var token: String?
        var accessToken: String?
        for (name, value) in parameters {
            switch name {
            case "ns": namespace = value
            case "auth": token = value
            case "access_token": accessToken = value
            case "auth_variable_override": override = try RealtimeOverride(parsing: value)
            case "print": form = value == "pretty" ? .pretty : value == "silent" ? .silent : .compact
            case "shallow": isShallow = value == "true"
            case "format":
                isExport = value == "export"
                isStrict = value == "strict"
            case "disableTriggers": disablesTriggers = value == "true"
            case "callback": callback = try Self.function(value)
            case "download": download = value
            case "timeout": timeoutMilliseconds = try Self.milliseconds(value)
            case "writeSizeLimit":
                guard let size = WriteSize(rawValue: value) else {
                    throw .invalidArgument("writeSizeLimit must be one of tiny, small, medium, large and unlimited")
                }
                writeSize = size
            case "x-http-method-override": methodOverride = value.uppercased()
            case "ls": formerSession = value
            case "sse": wantsEvents = value == "true"
            case "dryRun": isDryRun = value == "true"
            default: if Self.queryNames.contains(name) { queryParameters.append((name, value)) }
            }
        }
        if let accessToken {
            credential = .accessToken(accessToken)
        } else if let token {
            credential = .token(token)
        }
    }

    /// Whether there is any query parameter.
    var hasQuery: Bool { !queryParameters.isEmpty }

    /// The query; nil without one.
    /// - Throws: INVALID_ARGUMENT with the service's message.
    func query() throws(Status) -> TreeQuery? {
        guard hasQuery else { return nil }
        do throws(TreeDataError) {
            // Tools page through large locations with `shallow`: then bounds may be bare keys.
            return try TreeQuery(rest: isShallow ? queryParameters + [("shallow", "true")] : queryParameters)
        } catch {
            throw .invalidArgument(error.message)
        }
    }

    // MARK: Values

    /// A valid function name or member path: anything else could be a program.
    private static func function(_ string: String) throws(Status) -> String {
        let isName =
            (1...Limits.realtimeNameBytesMax).contains(string.utf8.count)
            && string.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "$"), UInt8(ascii: "."),
                    UInt8(ascii: "["), UInt8(ascii: "]"):
                    true
                default: false
                }
            }
        if !isName { throw .invalidArgument("callback must be the name of a function") }
        return string
    }

    private static func milliseconds(_ string: String) throws(Status) -> Int {
        let digits = string.prefix { $0.isASCII && $0.isNumber }
        let units = ["ms": 1, "s": 1000, "min": 60_000]
        guard let number = Int(digits), number > 0, let unit = units[String(string[digits.endIndex...])],
            number <= timeoutMillisecondsMax / unit
        else { throw .invalidArgument("timeout must be a time of at most 15min, like 100ms, 3s or 2min") }
        return number * unit
    }
}
