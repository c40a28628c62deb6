/// Finds a string in others, in time linear in both: the algorithm of Knuth, Morris and Pratt.
package struct TextSearch {
    private let needle: [UInt8]
    /// For each length of a prefix of the needle: the length of its longest proper prefix that is also its suffix.
    private let borders: [Int]

    package init(_ needle: String) {
        let bytes = Array(needle.utf8)
        var borders = [Int](repeating: 0, count: bytes.count + 1)
        var length = 0
        for index in bytes.indices.dropFirst() {
            while length > 0, bytes[index] != bytes[length] { length = borders[length] }
            if bytes[index] == bytes[length] { length += 1 }
            borders[index + 1] = length
        }
        self.needle = bytes
        self.borders = borders
    }

    package func isFound(in string: String) -> Bool {
        if needle.isEmpty { return true }
        var string = string
        return string.withUTF8 { bytes in
            var matched = 0
            for byte in bytes where step(byte, &matched) { return true }
            return false
        }
    }

    /// - Returns: whether the needle ends here.
    private func step(_ byte: UInt8, _ matched: inout Int) -> Bool {
        while matched > 0, needle[matched] != byte { matched = borders[matched] }
        if needle[matched] == byte { matched += 1 }
        guard matched == needle.count else { return false }
        matched = 0
        return true
    }

    /// Replaces all occurrences, which do not overlap; an empty string never occurs. Nil when the result is too long.
    package func replacing(in string: String, with replacement: String, sizeMax: Int) -> String? {
        if needle.isEmpty { return string }
        let replacement = Array(replacement.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(string.utf8.count)
        var matched = 0
        for byte in string.utf8 {
            result.append(byte)
            if step(byte, &matched) {
                result.removeLast(needle.count)
                result += replacement
                if result.count > sizeMax { return nil }
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
