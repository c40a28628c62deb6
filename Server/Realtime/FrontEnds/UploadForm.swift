import Glibc

/// The form in which browsers send a file: RFC 7578, `multipart/form-data`, in the syntax of RFC 2046, section 5.1.
struct UploadForm {
    /// RFC 2046, section 5.1.1.
    private static let boundaryBytesMax = 70

    private static let lineEnd = Array("\r\n".utf8)
    private static let space: Set<UInt8> = [UInt8(ascii: " "), UInt8(ascii: "\t")]

    /// Two hyphens and the boundary: begins each part, and ends the last one.
    private let delimiter: [UInt8]

    /// - Parameter contentType: of the request; nil when it has none.
    /// - Returns: nil when it is not that of a form.
    init?(contentType: String?) {
        var parameters = (contentType ?? "").split(separator: ";", omittingEmptySubsequences: false)[...]
        guard let type = parameters.popFirst(), Self.trimmed(type).lowercased() == "multipart/form-data" else {
            return nil
        }
        for parameter in parameters {
            let sides = parameter.split(separator: "=", maxSplits: 1).map(Self.trimmed)
            guard sides.count == 2, sides[0].lowercased() == "boundary" else { continue }
            var boundary = sides[1]
            if boundary.count >= 2, boundary.hasPrefix("\""), boundary.hasSuffix("\"") {
                boundary = boundary.dropFirst().dropLast()
            }
            guard (1...Self.boundaryBytesMax).contains(boundary.utf8.count),
                !boundary.utf8.contains(UInt8(ascii: "\r"))
            else { return nil }
            delimiter = Array("--\(boundary)".utf8)
            return
        }
        return nil
    }

    private static func trimmed(_ string: Substring) -> Substring {
        var string = string
        while let first = string.utf8.first, space.contains(first) { string.removeFirst() }
        while let last = string.utf8.last, space.contains(last) { string.removeLast() }
        return string
    }

    /// The content of the first file.
    /// - Returns: nil when there is none, and when the form is not complete.
    func file(in body: [UInt8]) -> Range<Int>? {
        var start: Int
        if body.starts(with: delimiter) {
            start = delimiter.count
        } else if let preamble = Self.find(Self.lineEnd + delimiter, in: body, from: 0) {
            start = preamble.upperBound
        } else {
            return nil
        }
        // Each step goes on behind what it has read.
        while true {
            while start < body.count, Self.space.contains(body[start]) { start += 1 }
            // Two hyphens follow the last delimiter.
            guard body[start...].starts(with: Self.lineEnd),
                let head = Self.find(Self.lineEnd + Self.lineEnd, in: body, from: start),
                let end = Self.find(Self.lineEnd + delimiter, in: body, from: head.upperBound - Self.lineEnd.count)
            else { return nil }
            let content = head.upperBound..<max(head.upperBound, end.lowerBound)
            if Self.isFile(body[start..<head.lowerBound]) { return content }
            start = end.upperBound
        }
    }

    private static let disposition = Array("content-disposition:".utf8)
    private static let fileName = Array("filename".utf8)

    /// - Parameter head: of a part; of any size, as everything that a client sends. So it is read in place: no memory
    ///   is counted for copies of it, nor for a list of its lines.
    private static func isFile(_ head: ArraySlice<UInt8>) -> Bool {
        var start = head.startIndex
        while start < head.endIndex {
            var end = start
            while end < head.endIndex, !(head[end] == lineEnd[0] && head[end...].starts(with: lineEnd)) { end += 1 }
            if names(head[start..<end]) { return true }
            start = end + lineEnd.count
        }
        return false
    }

    /// Whether a line of a head names a file.
    private static func names(_ line: ArraySlice<UInt8>) -> Bool {
        func isAt(_ position: Int, _ word: [UInt8]) -> Bool {
            line[position...].lazy.map(lowercased).starts(with: word)
        }
        guard isAt(line.startIndex, disposition) else { return false }
        return line.indices.contains { line[$0] | 0x20 == fileName[0] && isAt($0, fileName) }
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }

    /// - Parameter needle: begins with a carriage return. A delimiter has no other one: so the search takes linear time,
    ///   whatever the body is.
    private static func find(_ needle: [UInt8], in body: [UInt8], from start: Int) -> Range<Int>? {
        body.withUnsafeBytes { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var position = start
            while position + needle.count <= bytes.count,
                let found = memchr(base + position, Int32(needle[0]), bytes.count - position)
            {
                position = UnsafeRawPointer(found) - base
                if position + needle.count > bytes.count { return nil }
                if memcmp(base + position, needle, needle.count) == 0 { return position..<position + needle.count }
                position += 1
            }
            return nil
        }
    }
}
