import HearthModel

/// The reason and the location of an error in a JSON request. The path is collected while the error propagates
/// outwards, so that well-formed requests pay nothing for it.
struct JSONFailure {
    enum Kind {
        /// A member that is not allowed: its name and the reason.
        case name(String, String)
        /// A value of a wrong kind: the expected kind, and the value as a string or the reason.
        case value(String, String)
    }

    var kind: Kind
    /// Names (`where`) and positions (`[2]`), innermost first.
    private var path: [String] = []
    /// Whether the innermost name is the failing member itself, which is part of the message and not of the path.
    private var namesParent: Bool

    init(_ kind: Kind, namesParent: Bool = false) {
        self.kind = kind
        self.namesParent = namesParent
    }

    var isUnknownName: Bool {
        if case .name = kind { true } else { false }
    }

    mutating func note(_ element: String) {
        if namesParent {
            namesParent = false
        } else {
            path.append(element)
        }
    }

    /// The error in the wording of Google's front end.
    func status(at prefix: String) -> Status {
        var location = prefix
        for element in path.reversed() {
            if !location.isEmpty, element.utf8.first != UInt8(ascii: "[") { location += "." }
            location += element
        }
        switch kind {
        case .name(let name, let reason):
            let suffix = location.isEmpty ? "" : " at '\(location)'"
            return Status.invalidJSON("Unknown name \"\(name)\"\(suffix): \(reason)")
        case .value(let type, let string):
            let suffix = location.isEmpty ? "" : " at '\(location)'"
            return .invalidArgument("Invalid value\(suffix) (\(type)), \(string)")
        }
    }
}
