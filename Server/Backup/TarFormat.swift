import HearthModel

/// Archives as POSIX.1-2001 (pax) has them, of regular files alone. Source: "pax Interchange Format" and "ustar Interchange
/// Format", https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html; for GNU's long names and binary sizes
/// "Basic Tar Format", https://www.gnu.org/software/tar/manual/html_node/Standard.html.
package enum TarFormat {
    static let blockBytes = 512

    /// The end of an archive.
    static let end = [UInt8](repeating: 0, count: 2 * blockBytes)

    private static let nameBytesMax = 100
    /// Eleven octal digits.
    private static let octalBytesMax = 1 << 33 - 1

    static func padding(_ bytes: Int) -> Int { (blockBytes - bytes % blockBytes) % blockBytes }

    /// A file's header; before it a record of its name and size when they are too long for it.
    package static func header(_ path: String, bytes: Int, seconds: Int) -> [UInt8] {
        var records: [UInt8] = []
        if path.utf8.count > nameBytesMax { records += record("path", path) }
        if bytes > octalBytesMax { records += record("size", String(bytes)) }
        if records.isEmpty { return block(path, bytes: bytes, seconds: seconds, type: "0") }
        return block("pax-header", bytes: records.count, seconds: seconds, type: "x") + records
            + [UInt8](repeating: 0, count: padding(records.count))
            + block(
                String(path.suffix(20)), bytes: bytes > octalBytesMax ? 0 : bytes, seconds: seconds, type: "0")
    }

    /// `LENGTH KEY=VALUE\n`, where the length counts itself.
    private static func record(_ key: String, _ value: String) -> [UInt8] {
        let rest = Array(" \(key)=\(value)\n".utf8)
        var length = rest.count + 1
        while String(length).utf8.count + rest.count != length { length += 1 }
        return Array(String(length).utf8) + rest
    }

    private static func block(_ name: String, bytes: Int, seconds: Int, type: Character) -> [UInt8] {
        var block = [UInt8](repeating: 0, count: blockBytes)
        func put(_ string: String, at offset: Int) {
            for (index, byte) in string.utf8.enumerated() { block[offset + index] = byte }
        }
        func octal(_ number: Int, _ digits: Int) -> String {
            let string = String(number, radix: 8)
            return String(repeating: "0", count: digits - string.utf8.count) + string
        }
        put(name, at: 0)
        put(octal(0o600, 7), at: 100)
        put(octal(0, 7), at: 108)
        put(octal(0, 7), at: 116)
        put(octal(bytes, 11), at: 124)
        put(octal(max(0, seconds), 11), at: 136)
        put("        ", at: 148)
        put(String(type), at: 156)
        put("ustar", at: 257)
        put("00", at: 263)
        put(octal(block.reduce(0) { $0 + Int($1) }, 6), at: 148)
        block[154] = 0
        return block
    }
}

/// Reads an archive that arrives in pieces, and passes its files on. Takes what GNU tar, bsdtar and others make of a backup,
/// too.
package struct TarReader {
    private enum Stage {
        case header
        /// - Parameter padding: bytes behind the data.
        case file(left: Int, padding: Int)
        case record(Character, [UInt8], left: Int, padding: Int)
        case skip(Int)
        case end
    }

    private var stage = Stage.header
    private var block: [UInt8] = []
    private var position = 0
    private var nextPath: String?
    private var nextBytes: Int?

    package init() {}

    /// - Throws: DATA_LOSS with the byte where the archive is wrong; what the target throws.
    package mutating func take(_ piece: ArraySlice<UInt8>, _ target: any BackupTarget) throws(Status) {
        var rest = piece
        while !rest.isEmpty {
            let count: Int
            switch stage {
            case .header: count = try takeHeader(rest, target)
            case .file(let left, let padding):
                count = min(left, rest.count)
                try target.write(Array(rest.prefix(count)))
                try advanceFile(left - count, padding, target)
            case .record(let type, var bytes, let left, let padding):
                count = min(left, rest.count)
                bytes += rest.prefix(count)
                if left == count {
                    try takeRecord(type, bytes)
                    stage = padding > 0 ? .skip(padding) : .header
                } else {
                    stage = .record(type, bytes, left: left - count, padding: padding)
                }
            case .skip(let left):
                count = min(left, rest.count)
                stage = left == count ? .header : .skip(left - count)
            case .end:
                if let index = rest.firstIndex(where: { $0 != 0 }) {
                    position += index - rest.startIndex
                    throw wrong("there is something behind its end")
                }
                count = rest.count
            }
            position += count
            rest = rest.dropFirst(count)
        }
    }

    /// - Throws: DATA_LOSS when the archive was cut.
    package func finish() throws(Status) {
        if case .end = stage { return }
        throw Status(.dataLoss, "The archive is cut at byte \(position): it has no end.")
    }

    private func wrong(_ what: String) -> Status {
        Status(.dataLoss, "The archive is wrong at byte \(position): \(what).")
    }

    private mutating func advanceFile(_ left: Int, _ padding: Int, _ target: any BackupTarget) throws(Status) {
        if left > 0 { return stage = .file(left: left, padding: padding) }
        try target.end()
        stage = padding > 0 ? .skip(padding) : .header
    }

    private mutating func takeHeader(_ rest: ArraySlice<UInt8>, _ target: any BackupTarget) throws(Status) -> Int {
        let count = min(TarFormat.blockBytes - block.count, rest.count)
        block += rest.prefix(count)
        if block.count < TarFormat.blockBytes { return count }
        defer { block = [] }
        if block.allSatisfy({ $0 == 0 }) {
            stage = .end
            return count
        }
        let sum = (0..<TarFormat.blockBytes).reduce(0) { $0 + ((148..<156).contains($1) ? 32 : Int(block[$1])) }
        guard try number(148, 8) == sum else { throw wrong("a header has another checksum") }
        let type = Character(UnicodeScalar(block[156]))
        let bytes = try number(124, 12)
        switch type {
        case "0", "\0", "7":
            let size = nextBytes ?? bytes
            var path = nextPath ?? name()
            while path.hasPrefix("./") { path.removeFirst(2) }
            (nextPath, nextBytes) = (nil, nil)
            if let problem = BackupPath.problem(path) { throw wrong("the name \"\(path.prefix(200))\" \(problem)") }
            try target.begin(path, bytes: size)
            try advanceFile(size, TarFormat.padding(size), target)
        case "x", "L", "g", "K":
            guard bytes <= Limits.tarRecordBytesMax else { throw wrong("a record has \(bytes) bytes") }
            stage = bytes > 0 ? .record(type, [], left: bytes, padding: TarFormat.padding(bytes)) : .header
        case "5":
            (nextPath, nextBytes) = (nil, nil)
            if bytes > 0 { stage = .skip(bytes + TarFormat.padding(bytes)) }
        default: throw wrong("it has an entry of the type \"\(type)\", which no backup has")
        }
        return count
    }

    private func name() -> String {
        func field(_ range: Range<Int>) -> String { String(decoding: block[range].prefix { $0 != 0 }, as: UTF8.self) }
        let isPOSIX = block[257..<263].elementsEqual(Array("ustar\0".utf8))
        let prefix = isPOSIX ? field(345..<500) : ""
        return (prefix.isEmpty ? "" : prefix + "/") + field(0..<100)
    }

    /// Octal digits, or a binary number behind a bit.
    private func number(_ offset: Int, _ count: Int) throws(Status) -> Int {
        let field = block[offset..<offset + count]
        if field[offset] & 0x80 != 0 {
            guard field[offset] == 0x80, field.dropFirst().prefix(count - 8).allSatisfy({ $0 == 0 }) else {
                throw wrong("a header has a number that is too large")
            }
            let bits = field.suffix(7).reduce(0) { $0 << 8 | Int($1) }
            return bits
        }
        let digits = field.drop { $0 == UInt8(ascii: " ") }.prefix { $0 != 0 && $0 != UInt8(ascii: " ") }
        if digits.isEmpty { return 0 }
        guard let number = Int(String(decoding: digits, as: UTF8.self), radix: 8), number >= 0 else {
            throw wrong("a header has a number that is none")
        }
        return number
    }

    private mutating func takeRecord(_ type: Character, _ bytes: [UInt8]) throws(Status) {
        switch type {
        case "L": nextPath = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        case "x": try takePax(bytes[...])
        default: break
        }
    }

    private mutating func takePax(_ records: ArraySlice<UInt8>) throws(Status) {
        var rest = records
        while !rest.isEmpty {
            let digits = rest.prefix { $0 != UInt8(ascii: " ") }
            guard let length = Int(String(decoding: digits, as: UTF8.self)), length > digits.count + 1,
                length <= rest.count, rest[rest.startIndex + length - 1] == UInt8(ascii: "\n")
            else { throw wrong("a record has a length that isn't its own") }
            let record = rest[(rest.startIndex + digits.count + 1)..<(rest.startIndex + length - 1)]
            rest = rest.dropFirst(length)
            guard let equals = record.firstIndex(of: UInt8(ascii: "=")) else { throw wrong("a record has no value") }
            let value = String(decoding: record[(equals + 1)...], as: UTF8.self)
            switch String(decoding: record[..<equals], as: UTF8.self) {
            case "path": nextPath = value
            case "size":
                guard let size = Int(value), size >= 0 else { throw wrong("a record has a size that is none") }
                nextBytes = size
            default: break
            }
        }
    }
}
