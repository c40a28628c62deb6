import HearthModel

/// One header or trailer field of a request or a response. Names of received fields are lowercase.
package struct HTTPField: Sendable, Hashable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// The field in libcurl's form.
    /// - Throws: INVALID_ARGUMENT for a name that is not a token and for a value with control characters, which could
    ///   inject a second field.
    package func line() throws(Status) -> String {
        guard !name.isEmpty, HTTPField.all(name, HTTPField.isNameByte) else {
            throw .invalidArgument("\"\(name)\" is not a name of an HTTP field")
        }
        guard HTTPField.all(value, { $0 == 9 || ($0 >= 0x20 && $0 != 0x7F) }) else {
            throw .invalidArgument("the value of the HTTP field \(name) has control characters")
        }
        return value.isEmpty ? name + ";" : name + ": " + value
    }

    /// Over the memory of the string: several times faster than over its view.
    @inline(__always) private static func all(_ string: String, _ isTaken: (UInt8) -> Bool) -> Bool {
        string.utf8.withContiguousStorageIfAvailable { $0.allSatisfy(isTaken) } ?? string.utf8.allSatisfy(isTaken)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
