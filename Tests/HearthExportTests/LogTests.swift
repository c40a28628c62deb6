import HearthExport
import HearthModel
import HearthTestSupport
import Testing

@Suite struct LogTests {
    private static func records(_ bytes: [UInt8]) throws(Status) -> [[UInt8]] {
        let log = LogReader(MemorySource(bytes))
        var records: [[UInt8]] = []
        while let record = try log.next({ Array($0) }) { records.append(record) }
        return records
    }

    private static func log(_ records: [[UInt8]]) throws -> [UInt8] {
        let folder = TemporaryFolder()
        let writer = LogWriter(try FileSink(folder.path + "/log"))
        for record in records { try writer.append(record) }
        try writer.finish()
        return try TestData.bytes(folder.path + "/log")
    }

    @Test func checksumsAreThoseOfTheStandard() {
        var checksum = CRC32C()
        Array("123456789".utf8).withUnsafeBytes { checksum.update($0) }
        #expect(checksum.value == 0xE306_9283)
        var zeros = CRC32C()
        [UInt8](repeating: 0, count: 32).withUnsafeBytes { zeros.update($0) }
        #expect(zeros.value == 0x8A91_36AA)
    }

    @Test func recordsNearTheEndOfABlockComeBack() throws {
        for left in 0...20 {
            let records: [[UInt8]] = [
                [UInt8](repeating: 1, count: (32 << 10) - 7 - left), [2, 2], [UInt8](repeating: 3, count: 70_000), [],
                [4],
            ]
            #expect(try Self.records(Self.log(records)) == records, "\(left) bytes left")
        }
    }

    @Test func filesOfTheEmulatorAreWrittenAlike() throws {
        for name in ["types", "named-database", "blocks", "suite"] {
            let bytes = try TestData.bytes(try TestData.file("output-0", in: TestData.folder(name)))
            #expect(try Self.log(try Self.records(bytes)) == bytes, "\(name)")
        }
    }

    @Test func eachFlippedByteIsFound() throws {
        let bytes = try Self.log([[1, 2, 3], [], [UInt8](repeating: 4, count: 40)])
        for index in bytes.indices {
            for bit in 0..<8 {
                var damaged = bytes
                damaged[index] ^= 1 << UInt8(bit)
                let message = TestData.message { _ = try Self.records(damaged) }
                #expect(message?.hasPrefix("memory at byte ") == true, "byte \(index), bit \(bit)")
            }
        }
    }

    @Test func aCutFileEndsAtARecordOrIsRefused() throws {
        let records: [[UInt8]] = [[1], [UInt8](repeating: 2, count: 100), [3]]
        let bytes = try Self.log(records)
        for count in bytes.indices {
            let read = try? Self.records(Array(bytes[..<count]))
            #expect(read == nil || [0, 8, 115].contains(count), "\(count) bytes")
        }
        var within = try Self.log([[UInt8](repeating: 2, count: 40_000)])
        within.removeSubrange((32 << 10)...)
        #expect(
            TestData.message { _ = try Self.records(within) } == "memory at byte 32768: the file ends within a record.")
    }

    @Test func zerosFillABlock() throws {
        var bytes = try Self.log([[1]])
        bytes += [UInt8](repeating: 0, count: (32 << 10) - bytes.count)
        bytes += try Self.log([[2]])
        #expect(try Self.records(bytes) == [[1], [2]])
        bytes[1000] = 1
        #expect(TestData.message { _ = try Self.records(bytes) }?.contains("at byte 8:") == true)
    }

    @Test func aRecordThatIsTooLongIsRefused() throws {
        let bytes = try Self.log([[UInt8](repeating: 1, count: 100_000)])
        let log = LogReader(MemorySource(bytes), recordBytesMax: 99_999)
        #expect(throws: Status.self) { _ = try log.next { $0.count } }
    }
}
