/// The receiving half of HTTP/1.1 (RFC 9112) as a state machine without I/O.
///
/// It is strict where lenient parsers allow request smuggling past a proxy: lines end in CRLF only, a body has one
/// unambiguous length, fields are not folded, and a colon directly follows a field name.
///
/// The caller passes its input and the position up to which it is used. It requests one event after another until
/// `.needsMore`; then all input is used, and the parser holds the incomplete part.
package struct HTTP1Parser {
    package enum Event: Equatable {
        case needsMore
        case head(HTTP1Head)
        /// Body bytes: this range of the input.
        case body(Range<Int>)
        case end
        case failure(HTTP1Failure)
    }

    private enum State {
        case head
        case fixedBody(remaining: Int)
        case chunkSize
        case chunkData(remaining: Int)
        case chunkEnd
        case trailers
        case finishing
        case failed(HTTP1Failure)
    }

    private let limits: NetworkLimits
    private var state = State.head
    /// An incomplete line or head.
    private var held: [UInt8] = []
    var heldBytes: Int { held.count }
    private var scanner = HeadScanner()
    private var trailerBytes = 0

    package init(limits: NetworkLimits) { self.limits = limits }

    /// No byte of the next request has arrived.
    var isBetweenRequests: Bool {
        if case .head = state { return held.isEmpty }
        return false
    }

    var isInHead: Bool {
        if case .head = state { return true }
        return false
    }

    package mutating func next(_ input: UnsafeRawBufferPointer, _ position: inout Int) -> Event {
        switch state {
        case .head: return nextHead(input, &position)
        case .fixedBody(let remaining):
            let range = position..<min(input.count, position + remaining)
            guard !range.isEmpty else { return .needsMore }
            position = range.upperBound
            state = remaining == range.count ? .finishing : .fixedBody(remaining: remaining - range.count)
            return .body(range)
        case .chunkSize, .chunkEnd, .trailers: return nextChunkLine(input, &position)
        case .chunkData(let remaining):
            let range = position..<min(input.count, position + remaining)
            guard !range.isEmpty else { return .needsMore }
            position = range.upperBound
            state = remaining == range.count ? .chunkEnd : .chunkData(remaining: remaining - range.count)
            return .body(range)
        case .finishing:
            state = .head
            return .end
        case .failed(let failure): return .failure(failure)
        }
    }

    private mutating func fail(_ failure: HTTP1Failure) -> Event {
        state = .failed(failure)
        held = []
        return .failure(failure)
    }

    // MARK: Head

    private mutating func nextHead(_ input: UnsafeRawBufferPointer, _ position: inout Int) -> Event {
        // RFC 9112, 2.2: an empty line before the request line is ignored; some old clients send one after a body.
        while held.isEmpty, position + 1 < input.count, input[position] == .cr, input[position + 1] == .lf {
            position += 2
        }
        let start = position
        do {
            if held.isEmpty {
                // The usual case: the whole head is in the input and needs no copy.
                scanner = HeadScanner()
                let rest = UnsafeRawBufferPointer(rebasing: input[start...])
                if let end = try scanner.findEnd(of: rest, bytesMax: limits.headBytesMax) {
                    position = start + end
                    return try accept(UnsafeRawBufferPointer(rebasing: rest[..<end]))
                }
                held.append(contentsOf: rest)
            } else {
                let before = held.count
                held.append(contentsOf: input[start...])
                // The two bytes of an empty line before the head may arrive separately.
                if before == 1, held.count >= 2, held[0] == .cr, held[1] == .lf {
                    held = []
                    position = start + 1
                    return nextHead(input, &position)
                }
                let head = held
                if let end = try findEnd(of: head) {
                    position = start + (end - before)
                    held = []
                    return try head.withUnsafeBufferPointer { bytes throws(HTTP1Failure) in
                        try accept(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[..<end])))
                    }
                }
            }
            position = input.count
            return .needsMore
        } catch { return fail(error) }
    }

    private mutating func findEnd(of head: [UInt8]) throws(HTTP1Failure) -> Int? {
        try head.withUnsafeBufferPointer { bytes throws(HTTP1Failure) in
            try scanner.findEnd(of: UnsafeRawBufferPointer(bytes), bytesMax: limits.headBytesMax)
        }
    }

    private mutating func accept(_ bytes: UnsafeRawBufferPointer) throws(HTTP1Failure) -> Event {
        let head = try HTTP1HeadReader.read(bytes, limits: limits)
        state =
            switch head.body {
            case .none, .length(0): .finishing
            case .length(let length): .fixedBody(remaining: length)
            case .chunked: .chunkSize
            }
        return .head(head)
    }

    // MARK: Chunks

    private mutating func nextChunkLine(_ input: UnsafeRawBufferPointer, _ position: inout Int) -> Event {
        // Byte by byte: these lines are short, and this handles any split.
        while position < input.count {
            let byte = input[position]
            position += 1
            if byte != .lf {
                guard held.last != .cr else { return fail(.badRequest("CR without LF in a chunked body")) }
                held.append(byte)
                guard held.count <= limits.chunkLineBytesMax else {
                    return fail(.badRequest("a line of a chunked body is too long"))
                }
                continue
            }
            guard held.popLast() == .cr else { return fail(.badRequest("a line of a chunked body ends without CR")) }
            let line = held
            held = []
            do {
                try acceptChunkLine(line)
            } catch { return fail(error) }
            // No recursion for each of thousands of trailer fields.
            if case .trailers = state { continue }
            return next(input, &position)
        }
        return .needsMore
    }

    private mutating func acceptChunkLine(_ line: [UInt8]) throws(HTTP1Failure) {
        switch state {
        case .chunkSize:
            let size = try HTTP1HeadReader.chunkSize(line)
            trailerBytes = 0
            state = size == 0 ? .trailers : .chunkData(remaining: size)
        case .chunkEnd:
            guard line.isEmpty else { throw .badRequest("a chunk is longer than its size says") }
            state = .chunkSize
        default:
            guard !line.isEmpty else {
                state = .finishing
                return
            }
            // Trailer fields are validated like other fields, then dropped: the server uses none of them.
            trailerBytes += line.count
            guard trailerBytes <= limits.chunkLineBytesMax else { throw .badRequest("too many trailer fields") }
            _ = try line.withUnsafeBufferPointer { bytes throws(HTTP1Failure) in
                try HTTP1HeadReader.field(UnsafeRawBufferPointer(bytes))
            }
        }
    }
}

/// Searches for the empty line that ends a head. It reads each byte once, however the head is split.
private struct HeadScanner {
    private var searched = 0
    private var lineStart = 0

    /// The length of the head with its empty line, when it is complete. `bytes` begins with the head's first byte in
    /// each call.
    mutating func findEnd(of bytes: UnsafeRawBufferPointer, bytesMax: Int) throws(HTTP1Failure) -> Int? {
        while searched < bytes.count {
            // Check the limit before the byte: bytes after the limit must not determine the error.
            guard searched < bytesMax else {
                throw HTTP1Failure(status: 431, reason: "the request head is larger than \(bytesMax) bytes")
            }
            let byte = bytes[searched]
            searched += 1
            guard byte == .lf else { continue }
            guard searched > 1, bytes[searched - 2] == .cr else {
                throw .badRequest("a line of the head ends without CR")
            }
            let isEmptyLine = searched == lineStart + 2
            lineStart = searched
            if isEmptyLine { break }
        }
        return searched > 0 && lineStart == searched && endsWithEmptyLine(bytes) ? searched : nil
    }

    private func endsWithEmptyLine(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard searched >= 4 else { return searched == 2 }
        return bytes[searched - 3] == .lf && bytes[searched - 2] == .cr
    }
}

extension UInt8 {
    static let cr: UInt8 = 0x0D
    static let lf: UInt8 = 0x0A
}
