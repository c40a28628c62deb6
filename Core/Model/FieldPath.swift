/// A path of map keys to a value inside a document.
///
/// In string form, segments are joined by `.`; a segment that does not match `[A-Za-z_][A-Za-z0-9_]*` is quoted with
/// backquotes, in which `\` escapes a backquote and itself. Source: google.firestore.v1.StructuredQuery.FieldReference.
@usableFromInline package struct FieldPath: Sendable, CustomStringConvertible {
    @usableFromInline package let segments: [String]

    @inlinable package init(segments: [String]) {
        self.segments = segments
    }

    @inlinable package init(_ name: String) {
        segments = [name]
    }

    /// `__name__`: the document's name, where a query names a field.
    package static let documentName = FieldPath("__name__")

    @inlinable package var isDocumentName: Bool { segments.count == 1 && segments[0] == "__name__" }

    /// Parses the string form of a path.
    /// - Throws: `INVALID_ARGUMENT` with Google's wording when the string is not a path, is longer than 1500 bytes, or
    ///   names a reserved field other than `__name__`.
    package init(parsing string: String) throws(Status) {
        if string.utf8.count > Limits.fieldPathSizeBytesMax {
            throw .invalidArgument("The property path is longer than \(Limits.fieldPathSizeBytesMax) bytes.")
        }
        try self.init(unlimited: string)
        if segments.count > Limits.fieldPathSegmentsMax {
            throw .invalidArgument("paths must have at most \(Limits.fieldPathSegmentsMax) elements")
        }
        if !isDocumentName, let reserved = segments.first(where: Self.isReserved) {
            throw .invalidArgument("Invalid reserved name in field path \(reserved)")
        }
    }

    /// Parses a string that was checked before, or that the caller checks.
    /// - Throws: `INVALID_ARGUMENT` when the string is not a path.
    package init(unlimited string: String) throws(Status) {
        let bytes = Array(string.utf8)
        if bytes.isEmpty { throw .invalidArgument("Invalid empty property path string.") }
        var segments: [String] = []
        var index = 0
        while true {
            guard let segment = Self.parseSegment(bytes, &index) else { throw Self.malformed(string) }
            segments.append(segment)
            if index == bytes.count { break }
            guard bytes[index] == UInt8(ascii: ".") else { throw Self.malformed(string) }
            index += 1
        }
        self.segments = segments
    }

    private static func parseSegment(_ bytes: [UInt8], _ index: inout Int) -> String? {
        guard index < bytes.count else { return nil }
        if bytes[index] == UInt8(ascii: "`") { return parseQuotedSegment(bytes, &index) }
        let start = index
        while index < bytes.count, isNameByte(bytes[index], first: index == start) { index += 1 }
        return index > start ? String(decoding: bytes[start..<index], as: UTF8.self) : nil
    }

    private static func parseQuotedSegment(_ bytes: [UInt8], _ index: inout Int) -> String? {
        index += 1
        var unescaped: [UInt8] = []
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "`"):
                index += 1
                return unescaped.isEmpty ? nil : String(decoding: unescaped, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard index + 1 < bytes.count else { return nil }
                unescaped.append(bytes[index + 1])
                index += 2
            default:
                unescaped.append(bytes[index])
                index += 1
            }
        }
        return nil
    }

    private static func isNameByte(_ byte: UInt8, first: Bool) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
        case UInt8(ascii: "0")...UInt8(ascii: "9"): !first
        default: false
        }
    }

    private static func malformed(_ string: String) -> Status {
        .invalidArgument(
            "Invalid property path \"\(string)\". Unquoted property paths must match regex "
                + "([a-zA-Z_][a-zA-Z_0-9]*), and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)")
    }

    /// Whether a name matches `__.+__`, which Firestore reserves.
    @inlinable package static func isReserved(_ name: String) -> Bool {
        // Compares bytes: to Swift, an underscore with a combining accent is another character.
        let bytes = name.utf8
        return bytes.count >= 5 && bytes.starts(with: "__".utf8) && bytes.suffix(2).elementsEqual("__".utf8)
    }

    /// The string form, quoted where needed: equal paths have equal strings.
    @usableFromInline package var string: String {
        segments.count == 1 ? Self.quoted(segments[0]) : segments.map(Self.quoted).joined(separator: ".")
    }

    @inlinable package var description: String { string }

    /// A segment as it is in the string form.
    package static func quoted(_ segment: String) -> String {
        var segment = segment
        if segment.withUTF8({ isPlain(UnsafeRawBufferPointer($0)) }) { return segment }
        var escaped = "`"
        for scalar in segment.unicodeScalars {
            if scalar == "`" || scalar == "\\" { escaped.unicodeScalars.append("\\") }
            escaped.unicodeScalars.append(scalar)
        }
        return escaped + "`"
    }

    /// Whether a segment's UTF-8 bytes need no quotes.
    package static func isPlain(_ segment: UnsafeRawBufferPointer) -> Bool {
        if segment.isEmpty { return false }
        for index in segment.indices where !isNameByte(segment[index], first: index == 0) { return false }
        return true
    }

    /// Whether this path is `other` or one of its ancestors.
    @inlinable package func isPrefix(of other: FieldPath) -> Bool {
        segments.count <= other.segments.count && zip(segments, other.segments).allSatisfy { UTF8Order.equal($0, $1) }
    }
}

extension FieldPath: Hashable, Comparable {
    @inlinable package static func == (lhs: FieldPath, rhs: FieldPath) -> Bool {
        lhs.segments.count == rhs.segments.count && lhs.isPrefix(of: rhs)
    }

    @inlinable package func hash(into hasher: inout Hasher) {
        for segment in segments { UTF8Order.hash(segment, into: &hasher) }
    }

    /// By segments, each by its UTF-8 bytes.
    @inlinable package static func < (lhs: FieldPath, rhs: FieldPath) -> Bool {
        for (x, y) in zip(lhs.segments, rhs.segments) {
            let order = UTF8Order.compare(x, y)
            if order != 0 { return order < 0 }
        }
        return lhs.segments.count < rhs.segments.count
    }
}
