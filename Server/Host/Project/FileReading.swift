import HearthModel

/// Files that were read together, and whether reading them again may give something else.
package struct FileReading: Sendable {
    private var stamps: [String: FileStamp?] = [:]
    private let time: Timestamp
    /// Those that may change, or have changed, without another stamp.
    private var uncertain: Set<String> = []

    /// File systems count times of changes in steps; the longest, of 2 s, are those of FAT.
    private static let stepMicroseconds: Int64 = 2_000_000

    /// - Parameter time: the present.
    package init(at time: Timestamp = Timestamp(microseconds: 0)) { self.time = time }

    /// The bytes of a file; nil when it does not exist.
    /// - Throws: as `TextFile.read`.
    package mutating func read(_ path: String) throws(Status) -> [UInt8]? {
        let stamp = FileStamp(path)
        stamps[path] = .some(stamp)
        if let stamp, stamp.changedMicroseconds > time.microseconds - Self.stepMicroseconds {
            uncertain.insert(path)
        }
        do throws(Status) {
            return try TextFile.read(path)
        } catch {
            // Not all that keeps a file from being read is in its stamp.
            if error.code != .invalidArgument { uncertain.insert(path) }
            throw error
        }
    }

    /// Some files don't matter.
    package mutating func forget(_ isForgotten: (_ path: String) -> Bool) {
        stamps = stamps.filter { !isForgotten($0.key) }
        uncertain = uncertain.filter { !isForgotten($0) }
    }

    /// Whether all files are as they were.
    package var isCurrent: Bool { uncertain.isEmpty && stamps.allSatisfy { $0.value == FileStamp($0.key) } }
}
