/// The parameter and result types of functions and methods, for messages and for the compiler's warnings.
struct Signature: Sendable {
    /// `string.matches`, `math.abs`, `get`
    let name: String
    /// Names of types; `any` for all.
    let parameters: [String]
    let result: String

    var string: String { "\(name)(\(parameters.joined(separator: ", ")))" }
}

enum Signatures {
    /// One per line; an overloaded function has several. `number` in Google's messages is `float` where ints are
    /// accepted too.
    private static let declarations = """
        get(path) map
        exists(path) bool
        getAfter(path) map
        existsAfter(path) bool
        debug(any) any
        int(int) int
        int(float) int
        int(string) int
        float(int) float
        float(float) float
        float(string) float
        string(int) string
        string(float) string
        string(null) string
        string(string) string
        string(bool) string
        string(path) string
        path(string) path
        math.abs(int) int
        math.abs(float) float
        math.ceil(float) float
        math.floor(float) float
        math.round(float) int
        math.sqrt(float) float
        math.pow(float, float) float
        math.isNaN(float) bool
        timestamp.date(int, int, int) timestamp
        timestamp.value(int) timestamp
        timestamp.value(string) timestamp
        duration.value(int, string) duration
        duration.time(int, int, int, int) duration
        duration.abs(duration) duration
        latlng.value(float, float) latlng
        hashing.md5(bytes) bytes
        hashing.md5(string) bytes
        hashing.sha256(bytes) bytes
        hashing.sha256(string) bytes
        hashing.crc32(bytes) bytes
        hashing.crc32(string) bytes
        hashing.crc32c(bytes) bytes
        hashing.crc32c(string) bytes
        string.size() int
        string.lower() string
        string.upper() string
        string.trim() string
        string.matches(string) bool
        string.replace(string, string) string
        string.split(string) list
        string.toUtf8() bytes
        bytes.size() int
        bytes.toBase64() string
        bytes.toHexString() string
        list.size() int
        list.hasAll(list) bool
        list.hasAny(list) bool
        list.hasOnly(list) bool
        list.concat(list) list
        list.join(string) string
        list.removeAll(list) list
        list.toSet() set
        set.size() int
        set.hasAll(set) bool
        set.hasAll(list) bool
        set.hasAny(set) bool
        set.hasAny(list) bool
        set.hasOnly(set) bool
        set.hasOnly(list) bool
        set.difference(set) set
        set.intersection(set) set
        set.union(set) set
        map.keys() list
        map.values() list
        map.size() int
        map.get(string, any) any
        map.get(list, any) any
        map.diff(map) map_diff
        map_diff.addedKeys() set
        map_diff.removedKeys() set
        map_diff.changedKeys() set
        map_diff.affectedKeys() set
        map_diff.unchangedKeys() set
        timestamp.year() int
        timestamp.month() int
        timestamp.day() int
        timestamp.hours() int
        timestamp.minutes() int
        timestamp.seconds() int
        timestamp.nanos() int
        timestamp.dayOfWeek() int
        timestamp.dayOfYear() int
        timestamp.toMillis() int
        timestamp.date() timestamp
        timestamp.time() duration
        duration.seconds() int
        duration.nanos() int
        latlng.latitude() float
        latlng.longitude() float
        latlng.distance(latlng) float
        path.bind(map) path
        constraint.hasAny(list) bool
        """

    /// By name. `timestamp.date` names a function and a method, which have different numbers of parameters.
    static let all: [String: [Signature]] = {
        let signatures = declarations.split(separator: "\n").compactMap { line -> Signature? in
            guard let open = line.firstIndex(of: "("), let close = line.firstIndex(of: ")") else { return nil }
            let parameters = line[line.index(after: open)..<close].split(separator: ",")
                .map { String($0.drop { $0 == " " }) }
            return Signature(
                name: String(line[..<open]), parameters: parameters,
                result: String(line[line.index(close, offsetBy: 2)...]))
        }
        return Dictionary(grouping: signatures, by: \.name)
    }()

    /// - Parameter count: of two functions with one name, selects the one with this number of parameters.
    static func overloads(_ name: String, parameterCount: Int) -> [Signature] {
        (all[name] ?? []).filter { $0.parameters.count == parameterCount }
    }

    private static func strings(_ signatures: [Signature]) -> String {
        signatures.map(\.string).joined(separator: ", ")
    }

    /// The error for unsupported arguments of a function.
    static func unsupported(_ name: String, _ arguments: [RuleValue]) -> RuleValue {
        let received = "\(name)(\(arguments.map(\.typeName).joined(separator: ", ")))"
        let expected = overloads(name, parameterCount: arguments.count)
        return .failure(.unsupported(received: received, expected: strings(expected)))
    }

    static func unsupported(_ receiver: RuleValue, _ method: Method, _ arguments: [RuleValue]) -> RuleValue {
        unsupported("\(receiver.typeName).\(method.rawValue)", arguments)
    }

    static func wrongCount(of function: BuiltinFunction, _ count: Int) -> RuleValue {
        let expected = overloads(function.rawValue, parameterCount: function.parameterCount)
        return .failure(.argumentCount(received: count, expected: strings(expected)))
    }

    static func wrongCount(of receiver: RuleValue, _ method: Method, _ count: Int) -> RuleValue {
        let expected = overloads("\(receiver.typeName).\(method.rawValue)", parameterCount: method.parameterCount)
        if expected.isEmpty { return .failure(.functionNotFound(method.rawValue)) }
        return .failure(.argumentCount(received: count, expected: strings(expected)))
    }
}
