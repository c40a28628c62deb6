import HearthModel

/// What is wrong with a member of a JSON request, and where. The place is collected while the error travels outwards,
/// so that well-formed requests pay nothing for it.
struct JSONFailure {
    enum Kind {
        /// A member that shouldn't be there: its name and why.
        case name(String, String)
        /// A value of a wrong kind: the kind that was expected and the value's text, or why it is wrong.
        case value(String, String)
    }

    var kind: Kind
    /// Names (`where`) and positions (`[2]`), innermost first.
    private var path: [String] = []
    /// Whether the innermost name is the failing member itself, which stands in the message and not in the path.
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

    /// The error in the words of Google's front end.
    func status(at prefix: String) -> Status {
        var place = prefix
        for element in path.reversed() {
            if !place.isEmpty, element.utf8.first != UInt8(ascii: "[") { place += "." }
            place += element
        }
        switch kind {
        case .name(let name, let reason):
            let location = place.isEmpty ? "" : " at '\(place)'"
            return JSONReader.syntax("Unknown name \"\(name)\"\(location): \(reason)")
        case .value(let type, let string):
            let location = place.isEmpty ? "" : " at '\(place)'"
            return .invalidArgument("Invalid value\(location) (\(type)), \(string)")
        }
    }
}
