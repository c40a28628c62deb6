import HearthModel

/// A path: segments, some of which may be placeholders without a value.
final class RulePath: Sendable {
    enum Segment: Sendable, Equatable {
        case string(String)
        /// `{name}`, unbound. Segments that are unknown for a query have no name.
        case open(String)
    }

    let segments: [Segment]
    /// The names that `bind` has replaced, with the positions of their segments.
    let bound: [Binding]

    struct Binding: Sendable {
        var name: String
        var string: String
    }

    init(_ segments: [Segment], bound: [Binding] = []) {
        self.segments = segments
        self.bound = bound
    }

    convenience init(strings: some Sequence<String>) {
        self.init(strings.map { .string($0) })
    }

    /// In rules, `projects/P/databases/D/documents/…` is `/databases/D/documents/…`.
    convenience init(reference: String) {
        var segments = reference.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        if segments.count >= 2, segments[0] == "projects" { segments.removeFirst(2) }
        self.init(strings: segments)
    }

    /// `/databases/D/documents/…`
    convenience init(database: String, path: [String]) {
        self.init(strings: ["databases", database, "documents"] + path)
    }

    /// The first unbound name.
    var openName: String? {
        for case .open(let name) in segments { return name }
        return nil
    }

    var string: String {
        segments.map { segment in
            switch segment {
            case .string(let string): "/" + string
            case .open(let name): "/{\(name)}"
            }
        }.joined()
    }

    /// A path with an open segment does not equal any path, not even itself.
    static func equal(_ lhs: RulePath, _ rhs: RulePath) -> Bool {
        lhs.segments.count == rhs.segments.count
            && zip(lhs.segments, rhs.segments).allSatisfy { left, right in
                switch (left, right) {
                case (.string(let left), .string(let right)): UTF8Order.equal(left, right)
                default: false
                }
            }
    }
}
