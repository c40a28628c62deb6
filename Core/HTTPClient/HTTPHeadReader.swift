import HearthModel

extension [HTTPField] {
    /// The value of the first field with this (lowercase) name.
    package func firstValue(_ lowercaseName: String) -> String? {
        for field in self where field.name == lowercaseName { return field.value }
        return nil
    }
}

/// Parses the lines of a response's head and trailers from libcurl. Pure.
package struct HTTPHeadReader {
    package enum Phase { case head, body, trailers }

    package private(set) var phase = Phase.head
    /// `1.1`, `2`
    package private(set) var version = ""
    package private(set) var status = 0
    package private(set) var head: [HTTPField] = []
    package private(set) var trailers: [HTTPField] = []
    package private(set) var failure: Status?
    private var bytes = 0

    package init() {}

    /// - Returns: true when the head is complete with this line.
    package mutating func read(_ line: UnsafeRawBufferPointer) -> Bool {
        bytes += line.count
        guard bytes <= TransportLimits.headBytesMax else {
            failure = .resourceExhausted("the head of the answer is larger than \(TransportLimits.headBytesMax) bytes")
            return false
        }
        var end = line.count
        while end > 0, line[end - 1] == 13 || line[end - 1] == 10 { end -= 1 }
        let string = UnsafeRawBufferPointer(rebasing: line[..<end])
        if string.isEmpty { return endOfBlock() }
        // Another status line follows an interim response (1xx) or a redirection, whose fields are dropped. No field
        // name contains a slash.
        if string.starts(with: "HTTP/".utf8) {
            beginHead(String(decoding: string, as: UTF8.self))
            return false
        }
        if phase == .body { phase = .trailers }
        guard let colon = string.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let name = String(decoding: string[..<colon], as: UTF8.self).lowercased()
        let value = HTTPHeadReader.trimmed(string[(colon + 1)...])
        if phase == .head { head.append(HTTPField(name, value)) } else { trailers.append(HTTPField(name, value)) }
        return false
    }

    /// `HTTP/2 200`, or `HTTP/1.1 200 OK`. libcurl takes more than that.
    private mutating func beginHead(_ line: String) {
        phase = .head
        head = []
        let parts = line.split(separator: " ", maxSplits: 2)
        version = String(parts[0].dropFirst(5))
        func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
        let numbers = version.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard numbers.count <= 2, numbers.allSatisfy({ $0.count == 1 && $0.allSatisfy(isDigit) }), parts.count > 1,
            parts[1].utf8.count == 3, parts[1].utf8.allSatisfy(isDigit), let number = Int(parts[1])
        else {
            status = 0
            failure = failure ?? .unavailable("the status line of the answer is malformed")
            return
        }
        status = number
    }

    private mutating func endOfBlock() -> Bool {
        guard phase == .head, status >= 200, failure == nil else { return false }
        phase = .body
        return true
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        var bytes = bytes
        while let first = bytes.first, first == 32 || first == 9 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 32 || last == 9 { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }
}
