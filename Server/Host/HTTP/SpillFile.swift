import Glibc
import HearthConcurrency
import HearthModel

/// Bytes that are stored in memory while they are few and in an unnamed file when they are many. Written by one thread,
/// then read by any.
///
/// `@unchecked Sendable`: appending has one owner; afterwards nothing changes.
package final class SpillFile: @unchecked Sendable {
    private let folder: String
    private let memoryBytesMax: Int
    private let budget: MemoryReservation?
    private var memory: [UInt8] = []
    private var descriptor: Int32 = -1
    package private(set) var count: Int64 = 0

    /// - Parameter folder: the folder of the file, if one is needed.
    package convenience init(folder: String, memoryBytesMax: Int = Limits.bundleMemoryBytesMax) {
        self.init(folder: folder, memoryBytesMax: memoryBytesMax, budget: nil)
    }

    /// - Parameter budget: the shared budget of such files, which this object owns a part of; nil for no bound.
    package init(folder: String, memoryBytesMax: Int, budget: MemoryReservation?) {
        self.folder = folder
        self.memoryBytesMax = memoryBytesMax
        self.budget = budget
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        budget?.resize(to: 0)
    }

    static let tooMany = Status(.unavailable, "The server holds too many large answers.")

    var isInMemory: Bool { descriptor < 0 }

    /// The system's folder for temporary files.
    package static var temporaryFolder: String { getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp" }

    /// - Throws: RESOURCE_EXHAUSTED when the disk is full, UNAVAILABLE when the file cannot be created.
    package func append(_ bytes: [UInt8]) throws(Status) {
        if let budget, !budget.grow(by: bytes.count) {
            throw Self.tooMany
        }
        count += Int64(bytes.count)
        if descriptor < 0, memory.count + bytes.count <= memoryBytesMax {
            memory += bytes
        } else {
            if descriptor < 0 { try spill() }
            try write(bytes)
        }
    }

    /// - Throws: UNAVAILABLE when the file cannot be read.
    package func read(_ range: Range<Int64>) throws(Status) -> [UInt8] {
        precondition(range.upperBound <= count, "beyond the end of what was written")
        if descriptor < 0 { return Array(memory[Int(range.lowerBound)..<Int(range.upperBound)]) }
        var bytes = [UInt8](repeating: 0, count: range.count)
        var done = 0
        while done < bytes.count {
            let offset = Int(range.lowerBound) + done
            let size = bytes.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress! + done, buffer.count - done, offset)
            }
            if size < 0, errno == EINTR { continue }
            if size <= 0 { throw Self.failure("read a temporary file") }
            done += size
        }
        return bytes
    }

    private func spill() throws(Status) {
        var template = Array("\(folder)/hearth-bundle-XXXXXX".utf8CString)
        descriptor = mkstemp(&template)
        if descriptor < 0 { throw Self.failure("make a temporary file") }
        // The file is deleted when it is closed, even if the program crashes.
        unlink(template)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let bytes = memory
        memory = []
        try write(bytes)
    }

    private func write(_ bytes: [UInt8]) throws(Status) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let size = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if size < 0, errno == EINTR { continue }
            if size <= 0 { throw Self.failure("write a temporary file") }
            rest = rest.dropFirst(size)
        }
    }

    private static func failure(_ what: String) -> Status {
        let code: Status.Code = errno == ENOSPC || errno == EDQUOT ? .resourceExhausted : .unavailable
        return Status(code, "Cannot \(what): \(String(cString: strerror(errno))).")
    }
}
