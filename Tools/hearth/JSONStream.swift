import HearthJSON
import HearthToolSupport
import HearthTree

/// Splits JSON of any size while it is read. Values are returned as JSON strings; their receiver validates them.
///
/// `JSONLexer` reads a document in memory, and a file may be larger than memory. So this finds where values end by their
/// outline only, and takes the structure of containers that are larger than a piece.
final class JSONStream {
    private let input: FileInput
    /// Bytes that were read and not consumed.
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var depth = 0

    /// The depth of nested containers; the database has 32 levels.
    private static let depthMax = 100

    init(_ input: FileInput) { self.input = input }

    /// The number of consumed bytes.
    var position: Int { input.position - (buffer.count - start) }
    var sizeBytes: Int? { input.sizeBytes }

    func failure(_ reason: String) -> ToolFailure {
        ToolFailure(.failed, "This is not valid JSON at byte \(position): \(reason).")
    }

    // MARK: Bytes

    /// Reads more; false at the end.
    private func fill() throws(ToolFailure) -> Bool {
        if isAtEnd { return false }
        if start > 0, start >= buffer.count / 2 {
            buffer.removeFirst(start)
            start = 0
        }
        let piece = try input.read()
        isAtEnd = piece.isEmpty
        buffer += piece
        return !isAtEnd
    }

    /// The byte at a distance from the next one; nil after the end.
    private func byte(_ distance: Int) throws(ToolFailure) -> UInt8? {
        while start + distance >= buffer.count {
            guard try fill() else { return nil }
        }
        return buffer[start + distance]
    }

    private func take(_ count: Int) -> [UInt8] {
        let taken = Array(buffer[start..<start + count])
        start += count
        return taken
    }

    /// The next byte that is not whitespace.
    func peek() throws(ToolFailure) -> UInt8 {
        while let byte = try byte(0) {
            guard JSONOutline.isSpace(byte) else { return byte }
            start += 1
        }
        throw failure("the input ends too early")
    }

    private func expect(_ wanted: UInt8) throws(ToolFailure) {
        guard try peek() == wanted else { throw failure("expected \(Character(Unicode.Scalar(wanted)))") }
        start += 1
    }

    func expectEnd() throws(ToolFailure) {
        while let byte = try byte(0) {
            guard JSONOutline.isSpace(byte) else { throw failure("there is more after the value") }
            start += 1
        }
    }

    // MARK: Values

    /// Consumes the next value; nil, without consuming it, when it is larger.
    func value(sizeBytesMax: Int) throws(ToolFailure) -> [UInt8]? {
        let first = try peek()
        var length = 0
        var outline = JSONOutline()
        while let byte = try byte(length) {
            if length >= sizeBytesMax { return nil }
            if outline.take(byte) {
                // The separator or the bracket after a number or a literal.
                let isSeparator = byte == UInt8(ascii: ",") || JSONOutline.isSpace(byte)
                if outline.depth < 0 || outline.depth == 0 && isSeparator { return try scalar(length) }
                let isClosing = byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
                if outline.depth == 0, isClosing { return take(length + 1) }
            } else if outline.depth == 0, !outline.isInString {
                return take(length + 1)
            }
            length += 1
        }
        let isContainer = first == UInt8(ascii: "{") || first == UInt8(ascii: "[") || first == UInt8(ascii: "\"")
        if isContainer { throw failure("the input ends too early") }
        return try scalar(length)
    }

    private func scalar(_ length: Int) throws(ToolFailure) -> [UInt8] {
        if length == 0 { throw failure("expected a value") }
        return take(length)
    }

    /// Splits an object.
    /// - Parameter member: consumes the member's value.
    func object(_ member: (String) throws(ToolFailure) -> Void) throws(ToolFailure) {
        try container(UInt8(ascii: "{"), UInt8(ascii: "}")) { () throws(ToolFailure) in
            guard try peek() == UInt8(ascii: "\""), let string = try value(sizeBytesMax: 16 << 10) else {
                throw failure("expected a name")
            }
            let name: String?
            do throws(TreeDataError) { name = try TreeJSON.value(string).string } catch { name = nil }
            guard let name else { throw failure("a name can't be read") }
            try expect(UInt8(ascii: ":"))
            try member(name)
        }
    }

    func array(_ element: () throws(ToolFailure) -> Void) throws(ToolFailure) {
        try container(UInt8(ascii: "["), UInt8(ascii: "]"), element)
    }

    private func container(
        _ opening: UInt8, _ closing: UInt8, _ element: () throws(ToolFailure) -> Void
    ) throws(ToolFailure) {
        try expect(opening)
        depth += 1
        defer { depth -= 1 }
        if depth > Self.depthMax { throw failure("it is nested too deeply") }
        if try peek() == closing {
            start += 1
            return
        }
        while true {
            try element()
            let next = try peek()
            start += 1
            if next == closing { return }
            if next != UInt8(ascii: ",") { throw failure("expected a comma") }
        }
    }
}
