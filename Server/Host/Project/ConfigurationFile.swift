import HearthModel

/// A JSON file of a project, with what is wrong in it and does no harm.
///
/// Firebase's tools read `firebase.json`, `.firebaserc` and `firestore.indexes.json` with the package `cjson`: it takes away
/// byte order marks and comments, replaces bytes that are no UTF-8, and the last of several members with one name counts.
/// What they take is taken here, with a sentence that names file, line and member. Neither takes a comma before a closing
/// bracket.
package struct ConfigurationFile: Sendable {
    package let root: ConfigurationValue
    /// A sentence for each flaw.
    package private(set) var warnings: [String] = []

    /// - Parameter repairs: whether bytes that are no UTF-8 are replaced, and not refused.
    /// - Throws: INVALID_ARGUMENT with file, line and column where the file is not JSON.
    package init(parsing bytes: [UInt8], file: String, repairs: Bool = true) throws(Status) {
        var content = TextFile.withoutMark(bytes[...])
        if content.count < bytes.count {
            warnings.append("\(file):1:1: The file begins with a byte order mark, which is ignored.")
        }
        if repairs, String(validating: content, as: UTF8.self) == nil {
            content = Self.repaired(content, file, &warnings)
        }
        root = try ConfigurationValue(parsing: Array(content), file: file)
        noteDuplicates(in: root)
    }

    /// Bytes that are no UTF-8 become U+FFFD, as in Firebase's tools.
    private static func repaired(_ content: ArraySlice<UInt8>, _ file: String, _ warnings: inout [String])
        -> ArraySlice<
            UInt8
        >
    {
        let newline = UInt8(ascii: "\n")
        for (number, line) in content.split(separator: newline, omittingEmptySubsequences: false).enumerated()
        where String(validating: line, as: UTF8.self) == nil {
            warnings.append("\(file):\(number + 1): The line is not valid UTF-8; what cannot be read is replaced.")
            break
        }
        return Array(String(decoding: content, as: UTF8.self).utf8)[...]
    }

    private mutating func noteDuplicates(in value: ConfigurationValue) {
        switch value.content {
        case .array(let elements):
            for element in elements { noteDuplicates(in: element) }
        case .object(let members):
            var names: Set<[UInt8]> = []
            for member in members {
                if !names.insert(Array(member.name.utf8)).inserted {
                    warnings.append(
                        member.value.failure("The member is in the object more than once; the last one counts.").message
                    )
                }
                noteDuplicates(in: member.value)
            }
        case .null, .boolean, .number, .string: break
        }
    }
}
