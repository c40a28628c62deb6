/// The segments of a name below a database: collection id, document id, collection id, …
@usableFromInline package struct ResourcePath: Sendable, CustomStringConvertible {
    @usableFromInline package var segments: [String]

    @inlinable package init(_ segments: [String] = []) {
        self.segments = segments
    }

    @inlinable package var isRoot: Bool { segments.isEmpty }
    @inlinable package var isDocument: Bool { !segments.isEmpty && segments.count.isMultiple(of: 2) }
    @inlinable package var isCollection: Bool { !segments.count.isMultiple(of: 2) }
    @inlinable package var parent: ResourcePath { ResourcePath(Array(segments.dropLast())) }
    /// Of a document: the id of the collection that it is in.
    @inlinable package var collectionID: String { segments[segments.count - 2] }
    @inlinable package var string: String { segments.joined(separator: "/") }
    @inlinable package var description: String { string }

    @inlinable package func appending(_ segment: String) -> ResourcePath { ResourcePath(segments + [segment]) }

    static func split(_ string: String) -> [String] {
        var string = string
        return string.withUTF8 { bytes in
            var segments: [String] = []
            segments.reserveCapacity(8)
            var start = 0
            for index in 0...bytes.count where index == bytes.count || bytes[index] == UInt8(ascii: "/") {
                segments.append(String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<index]), as: UTF8.self))
                start = index + 1
            }
            return segments
        }
    }

    /// False for nearly all ids that are not numeric, at little cost.
    @inlinable
    package static func mayBeNumericID(_ segment: String) -> Bool {
        segment.utf8.count >= 7 && segment.utf8[segment.utf8.startIndex] == UInt8(ascii: "_")
    }

    /// The number in an id of the form `__id<int64>__`, the form of Datastore's numeric ids; nil for other spellings,
    /// including leading zeros.
    @inlinable
    package static func numericID(_ segment: String) -> Int64? {
        guard mayBeNumericID(segment), segment.hasPrefix("__id"), segment.hasSuffix("__") else { return nil }
        let digits = segment.dropFirst(4).dropLast(2)
        guard let number = Int64(digits), String(number) == digits else { return nil }
        return number
    }

    /// Checks one collection or document id.
    /// - Parameter kind: true for a collection id.
    @usableFromInline static func validate(_ segment: String, kind: Bool, index: Int, name: String) throws(Status) {
        if segment.isEmpty {
            throw .invalidArgument("Document name \"\(name)\" contains an empty resource id at index \(index).")
        }
        let length = segment.utf8.count
        if length > Limits.idSizeBytesMax {
            throw .invalidArgument(
                "The key path element \(kind ? "kind" : "name") is longer than \(Limits.idSizeBytesMax) bytes.")
        }
        if segment == "." || segment == ".." {
            throw .invalidArgument("Document name \"\(name)\" contains a resource id \"\(segment)\" at index \(index).")
        }
        if FieldPath.isReserved(segment), kind || numericID(segment) == nil {
            throw .invalidArgument(
                "\(kind ? "Collection" : "Resource") id \"\(segment)\" is invalid because it is reserved.")
        }
    }
}

extension ResourcePath: Hashable {
    @inlinable package static func == (lhs: ResourcePath, rhs: ResourcePath) -> Bool {
        lhs.segments.count == rhs.segments.count
            && zip(lhs.segments, rhs.segments).allSatisfy { UTF8Order.equal($0, $1) }
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        for segment in segments { UTF8Order.hash(segment, into: &hasher) }
    }
}
