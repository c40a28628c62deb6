internal import HearthModel

/// Paths in the user's form.
enum Paths {
    static func collection(_ string: String, below parent: ResourcePath) throws(Status) -> ResourcePath {
        let path = try parse(string, "Collection", below: parent)
        guard path.isCollection else {
            throw .invalidArgument(
                "Invalid collection reference. Collection references must have an odd number of segments, but \(path.string) "
                    + "has \(path.segments.count).")
        }
        return path
    }

    static func document(_ string: String, below parent: ResourcePath) throws(Status) -> ResourcePath {
        let path = try parse(string, "Document", below: parent)
        guard path.isDocument else {
            throw .invalidArgument(
                "Invalid document reference. Document references must have an even number of segments, but \(path.string) "
                    + "has \(path.segments.count).")
        }
        return path
    }

    static func collectionID(_ string: String) throws(Status) -> String {
        if string.isEmpty { throw .invalidArgument("Collection ID cannot be empty.") }
        if string.contains("/") {
            throw .invalidArgument("Invalid collection ID \(string). Collection IDs must not contain '/' in them.")
        }
        return string
    }

    private static func parse(_ string: String, _ kind: String, below parent: ResourcePath) throws(Status)
        -> ResourcePath
    {
        if string.isEmpty { throw .invalidArgument("\(kind) path cannot be empty.") }
        // By bytes: in Swift, a slash with a combining accent is another character.
        var segments = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
        // One slash at either end is ignored.
        if segments.count > 1, segments[0].isEmpty { segments.removeFirst() }
        if segments.count > 1, segments[segments.count - 1].isEmpty { segments.removeLast() }
        if segments.contains(where: \.isEmpty) {
            throw .invalidArgument("Invalid path (\(string)). Paths must not contain // in them.")
        }
        return ResourcePath(parent.segments + segments)
    }

    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    /// 20 characters, each one of 62. The probability of a collision is about that of random UUIDs.
    static func newDocumentID() -> String {
        var random = SystemRandomNumberGenerator()
        return String((0..<20).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] })
    }
}
