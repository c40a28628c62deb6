import HearthModel
import HearthTestSupport
import Testing

@testable import HearthBackup

/// Archives: what is written is read again, however it arrives; what is damaged or hostile is refused.
struct TarFormatTests {
    /// Notes what it is given.
    private final class Noted: BackupTarget {
        var files: [(path: String, announced: Int, bytes: [UInt8])] = []
        var ended = 0

        func begin(_ path: String, bytes: Int) { files.append((path, bytes, [])) }
        func write(_ bytes: [UInt8]) { files[files.count - 1].bytes += bytes }
        func end() { ended += 1 }
        func finish() {}
    }

    private final class Bytes {
        var bytes: [UInt8] = []
    }

    private func archive(_ files: [(String, [UInt8])]) throws -> [UInt8] {
        let sent = Bytes()
        let target = TarTarget(seconds: 1_764_217_869) { sent.bytes += $0 }
        for (path, bytes) in files {
            try target.begin(path, bytes: bytes.count)
            if !bytes.isEmpty { try target.write(bytes) }
            try target.end()
        }
        try target.finish()
        return sent.bytes
    }

    /// With the checksum that its other bytes have.
    private func sealed(_ header: [UInt8]) -> [UInt8] {
        let sum = header.indices.reduce(0) { $0 + ((148..<156).contains($1) ? 32 : Int(header[$1])) }
        let digits = Array(String(sum, radix: 8).utf8)
        var header = header
        header.replaceSubrange(148..<156, with: digits + [UInt8](repeating: 0, count: 8 - digits.count))
        return header
    }

    private let files: [(String, [UInt8])] = [
        ("p/(default).sqlite", [UInt8](repeating: 7, count: 4096)), ("empty", []), ("one", [1]),
        ("p/" + String(repeating: "n", count: 130) + "/é.sqlite", [UInt8](0..<255) + [UInt8](0..<255) + [1, 2]),
    ]

    @Test(arguments: [1, 511, 512, 513, 100_000])
    func whatIsWrittenIsReadHoweverItArrives(pieceBytes: Int) throws {
        let bytes = try archive(files)
        #expect(bytes.count % 512 == 0)
        var reader = TarReader()
        let noted = Noted()
        for start in stride(from: 0, to: bytes.count, by: pieceBytes) {
            try reader.take(bytes[start..<min(start + pieceBytes, bytes.count)], noted)
        }
        try reader.finish()
        #expect(noted.files.map(\.path) == files.map(\.0))
        #expect(noted.files.map(\.bytes) == files.map(\.1))
        #expect(noted.ended == files.count)
    }

    @Test func aFileBeyondWhatAHeaderHoldsKeepsItsSize() throws {
        let size = 20 << 30
        let header = TarFormat.header("large", bytes: size, seconds: 0)
        #expect(header.count == 3 * 512)
        var reader = TarReader()
        let noted = Noted()
        try reader.take(header[...], noted)
        #expect(noted.files.map(\.announced) == [size])
        #expect(throws: Status.self) { try reader.finish() }
    }

    @Test func binarySizesAndLongNamesOfGNU() throws {
        var long = TarFormat.header("x", bytes: 120, seconds: 0)
        long[156] = UInt8(ascii: "L")
        var file = TarFormat.header("cut", bytes: 0, seconds: 0)
        file.replaceSubrange(124..<136, with: [0x80, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0])
        (long, file) = (sealed(long), sealed(file))
        let name = String(repeating: "g", count: 119)
        var reader = TarReader()
        let noted = Noted()
        try reader.take((long + Array(name.utf8) + [0] + [UInt8](repeating: 0, count: 392) + file)[...], noted)
        #expect(noted.files.map(\.path) == [name])
        #expect(noted.files.map(\.announced) == [5 << 32])
    }

    @Test func eachFlippedByteOfAHeaderIsFound() throws {
        let bytes = try archive([("a/b", [1, 2, 3])])
        // The last byte of the checksum's field means nothing.
        for index in 0..<512 where index != 155 {
            var damaged = bytes
            damaged[index] ^= 0x41
            var reader = TarReader()
            #expect(throws: Status.self, "byte \(index)") {
                try reader.take(damaged[...], Noted())
                try reader.finish()
            }
        }
    }

    @Test func onlyZerosMayFollowTheEnd() throws {
        let bytes = try archive(files)
        for end in [0, 1, 511, 9000] {
            let zeros = [UInt8](repeating: 0, count: end)
            var reader = TarReader()
            try reader.take((bytes + zeros)[...], Noted())
            try reader.finish()
            reader = TarReader()
            let failure = #expect(throws: Status.self) { try reader.take((bytes + zeros + [1])[...], Noted()) }
            #expect(failure?.message.contains("byte \(bytes.count + end)") == true)
        }
    }

    @Test func anArchiveThatIsCutIsFound() throws {
        let bytes = try archive(files)
        for count in stride(from: 0, through: bytes.count - 1024, by: 128) {
            var reader = TarReader()
            try reader.take(bytes[..<count], Noted())
            #expect(throws: Status.self, "\(count)") { try reader.finish() }
        }
    }

    @Test(arguments: [
        "../a", "/etc/passwd", "a/../../b", "a//b", "", "a/.", "../\u{301}a", String(repeating: "a/", count: 64) + "x",
    ])
    func namesThatLeaveTheFolderAreRefused(name: String) {
        var reader = TarReader()
        #expect(throws: Status.self) {
            try reader.take(TarFormat.header(name, bytes: 0, seconds: 0)[...], Noted())
        }
    }

    @Test func linksAreRefused() {
        var block = TarFormat.header("a", bytes: 0, seconds: 0)
        var reader = TarReader()
        #expect(throws: Never.self) { try reader.take(sealed(block)[...], Noted()) }
        block[156] = UInt8(ascii: "2")
        reader = TarReader()
        let failure = #expect(throws: Status.self) { try reader.take(sealed(block)[...], Noted()) }
        #expect(failure?.message.contains("type") == true)
    }
}
