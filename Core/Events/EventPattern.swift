import HearthModel

/// A pattern of paths whose changes a trigger wants: of documents, or of the Realtime Database's locations.
///
///     lit                     itself, by bytes
///     *  pre*  *post  p*t     one segment; the star matches any part of it, also none
///     {name}  {name=pre*}     the same, and the segment is captured
///     **  {name=**}           any number of segments, also none
///
/// A segment has at most one star and a pattern at most one `**`. All other characters match themselves.
/// Source: Eventarc, "Path patterns"; observed on Google's emulator where that is silent.
package struct EventPattern: Sendable, Equatable {
    enum Segment: Sendable, Equatable {
        case literal([UInt8])
        /// One segment that begins and ends so.
        case part(prefix: [UInt8], suffix: [UInt8])
        case many
    }

    package let string: String
    let segments: [Segment]
    /// For each segment the name of its capture.
    private let captures: [String?]
    /// The position of `**`.
    private let manyIndex: Int?

    package enum Subject: Sendable {
        case documents
        /// Of the Realtime Database, which has no `**`.
        case locations
    }

    /// - Throws: INVALID_ARGUMENT with what is wrong.
    package init(_ string: String, of subject: Subject) throws(Status) {
        var parts = string.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if parts.count > 1, parts[0].isEmpty { parts.removeFirst() }
        var segments: [Segment] = []
        var captures: [String?] = []
        var many: Int?
        for part in parts {
            let (segment, name) = try Self.segment(String(decoding: part, as: UTF8.self), in: string)
            if segment == .many {
                if many != nil { throw Self.wrong(string, "has more than one **") }
                many = segments.count
            }
            if let name, captures.contains(where: { $0.map { UTF8Order.equal($0, name) } ?? false }) {
                throw Self.wrong(string, "has two captures with the name \(name)")
            }
            segments.append(segment)
            captures.append(name)
        }
        switch subject {
        case .documents:
            if many == nil, segments.count % 2 != 0 {
                throw Self.wrong(string, "is one of collections: a document's path has an even number of segments")
            }
        case .locations:
            if many != nil { throw Self.wrong(string, "has **, which the Realtime Database does not know") }
        }
        self.string = string
        self.segments = segments
        self.captures = captures
        manyIndex = many
    }

    /// The pattern of one document alone, whose path may have any characters.
    /// - Throws: INVALID_ARGUMENT when it is no path of a document.
    package init(exactly path: String) throws(Status) {
        var parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if parts.count > 1, parts[0].isEmpty { parts.removeFirst() }
        if parts.contains(where: \.isEmpty) { throw Self.wrong(path, "has an empty segment") }
        if parts.count % 2 != 0 {
            throw Self.wrong(path, "is a collection: a document's path has an even number of segments")
        }
        string = path
        segments = parts.map { .literal(Array($0)) }
        captures = parts.map { _ in nil }
        manyIndex = nil
    }

    private static func wrong(_ string: String, _ fault: String) -> Status {
        .invalidArgument("The pattern \"\(string)\" \(fault).")
    }

    private static func segment(_ string: String, in pattern: String) throws(Status) -> (Segment, name: String?) {
        if string.isEmpty { throw wrong(pattern, "has an empty segment") }
        if string == "." || string == ".." { throw wrong(pattern, "has the segment \(string)") }
        let bytes = Array(string.utf8)
        guard bytes.first == UInt8(ascii: "{") else { return (try segment(bytes[...], in: pattern), nil) }
        guard bytes.last == UInt8(ascii: "}") else {
            throw wrong(pattern, "has a capture that is not closed within its segment: \(string)")
        }
        let inner = bytes[1..<bytes.count - 1]
        let equals = inner.firstIndex(of: UInt8(ascii: "=")) ?? inner.endIndex
        let name = inner[..<equals]
        if name.isEmpty || name.contains(UInt8(ascii: "*")) {
            throw wrong(pattern, "has a capture without a name: \(string)")
        }
        let rest = equals < inner.endIndex ? inner[(equals + 1)...] : [UInt8(ascii: "*")]
        if rest.isEmpty { throw wrong(pattern, "has a capture of nothing: \(string)") }
        return (try segment(rest, in: pattern), String(decoding: name, as: UTF8.self))
    }

    private static func segment(_ bytes: ArraySlice<UInt8>, in pattern: String) throws(Status) -> Segment {
        let star = UInt8(ascii: "*")
        if bytes.elementsEqual([star, star]) { return .many }
        if bytes.contains(UInt8(ascii: "{")) || bytes.contains(UInt8(ascii: "}")) {
            throw wrong(pattern, "has a brace that is not the beginning or the end of a segment")
        }
        guard let index = bytes.firstIndex(of: star) else { return .literal(Array(bytes)) }
        let suffix = bytes[(index + 1)...]
        if suffix.contains(star) { throw wrong(pattern, "has two stars in a segment") }
        return .part(prefix: Array(bytes[..<index]), suffix: Array(suffix))
    }

    /// Whether all paths match.
    package var matchesEverything: Bool { segments == [.many] }

    /// The segments with which all paths that match begin.
    package var literalPrefix: [String] {
        var prefix: [String] = []
        for segment in segments {
            guard case .literal(let bytes) = segment else { break }
            prefix.append(String(decoding: bytes, as: UTF8.self))
        }
        return prefix
    }

    /// How many segments all paths that match have; nil when their number varies.
    package var segmentCount: Int? { manyIndex == nil ? segments.count : nil }

    /// The id of the collection in which all documents that match are; nil when it may be any.
    package var collectionID: String? {
        guard segments.count >= 2, segments[segments.count - 1] != .many,
            case .literal(let bytes) = segments[segments.count - 2]
        else { return nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Matching

    package func matches(_ path: EventPath) -> Bool {
        guard let manyIndex else {
            return path.count == segments.count && matches(path, from: 0, to: segments.count, offset: 0)
        }
        let tail = segments.count - manyIndex - 1
        return path.count >= manyIndex + tail && matches(path, from: 0, to: manyIndex, offset: 0)
            && matches(path, from: manyIndex + 1, to: segments.count, offset: path.count - segments.count)
    }

    /// - Parameter offset: how much further a segment of the path is than that of the pattern.
    private func matches(_ path: EventPath, from start: Int, to end: Int, offset: Int) -> Bool {
        for index in start..<end {
            let segment = path[index + offset]
            switch segments[index] {
            case .literal(let bytes): if !segment.elementsEqual(bytes) { return false }
            case .part(let prefix, let suffix):
                if segment.count < prefix.count + suffix.count || !segment.starts(with: prefix)
                    || !segment.suffix(suffix.count).elementsEqual(suffix)
                {
                    return false
                }
            case .many: return false
            }
        }
        return true
    }

    /// What a path that matches has at the captures.
    package func captures(_ path: EventPath) -> [(name: String, value: String)] {
        let more = path.count - segments.count
        return captures.enumerated().compactMap { index, name in
            guard let name else { return nil }
            var range = index..<index + 1
            if let manyIndex {
                if index == manyIndex { range = index..<index + 1 + more }
                if index > manyIndex { range = index + more..<index + 1 + more }
            }
            return (name, range.map { String(decoding: path[$0], as: UTF8.self) }.joined(separator: "/"))
        }
    }

    package static func == (lhs: EventPattern, rhs: EventPattern) -> Bool {
        UTF8Order.equal(lhs.string, rhs.string) && lhs.segments == rhs.segments
    }
}

/// A path that patterns are compared with: bytes, and where its segments are.
package struct EventPath: Sendable {
    private let bytes: [UInt8]
    private let ends: [Int]

    /// - Parameter bytes: segments with a slash between them.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var ends: [Int] = []
        for (index, byte) in bytes.enumerated() where byte == UInt8(ascii: "/") { ends.append(index) }
        ends.append(bytes.count)
        self.ends = ends
    }

    package init(_ string: String) { self.init(Array(string.utf8)) }

    package var count: Int { ends.count }

    subscript(index: Int) -> ArraySlice<UInt8> { bytes[(index == 0 ? 0 : ends[index - 1] + 1)..<ends[index]] }
}
