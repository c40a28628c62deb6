import HearthTestSupport
import HearthModel
import Testing

@testable import HearthHost

@Suite struct SpillFileTests {
    @Test(arguments: [0, 10, 1000]) func writtenBytesAreReadAgain(_ memoryBytesMax: Int) throws {
        let folder = TemporaryFolder()
        let file = SpillFile(folder: folder.path, memoryBytesMax: memoryBytesMax)
        var expected: [UInt8] = []
        for number in 0..<50 {
            let piece = [UInt8](repeating: UInt8(number), count: number % 7)
            try file.append(piece)
            expected += piece
        }
        #expect(file.count == Int64(expected.count))
        #expect(file.isInMemory == (memoryBytesMax == 1000))
        for start in stride(from: 0, to: expected.count, by: 11) {
            let end = min(start + 30, expected.count)
            #expect(try file.read(Int64(start)..<Int64(end)) == Array(expected[start..<end]))
        }
    }

    @Test func aMissingFolderIsReported() {
        let file = SpillFile(folder: "/nowhere/at/all", memoryBytesMax: 1)
        let error = #expect(throws: Status.self) { try file.append([1, 2]) }
        // Clients get it, and need not know the path.
        #expect(error?.message == "Cannot make a temporary file: No such file or directory.")
    }

    @Test func theSizeOfABundleIsLimited() throws {
        var spool = BundleFileSpool(folder: SpillFile.temporaryFolder)
        try spool.append([1, 2, 3])
        #expect(try spool.read(1..<3) == [2, 3])
    }
}
