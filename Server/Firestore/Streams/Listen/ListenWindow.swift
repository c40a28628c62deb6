import HearthConcurrency
import HearthModel

/// The documents that the client of a target has of a query with a limit or an offset, with their update versions.
///
/// What it takes is reserved on the account of the client, so that thousands of targets with large limits are refused before
/// they fill the server. Belongs to one thread at a time: that of the loading, then that of the stream's loop.
final class ListenWindow {
    private(set) var versions: [[UInt8]: Int64] = [:]
    /// The version at which it was as it is noted here.
    var version: Int64 = 0
    private var sizeBytes = 0
    private let memory: MemoryReservation

    /// Of a document, besides the bytes of its key.
    private static let entrySizeBytes = 96
    /// How much more is taken than is needed at the moment, because each step has to ask what all share.
    private static let stepBytes = 16 << 10

    static let isFull = Status(
        .resourceExhausted,
        "The targets with a limit or an offset hold more documents than the server has memory for. Lower their limits, or "
            + "remove some of them.")

    init(_ memory: MemoryReservation) { self.memory = memory }

    static func sizeBytes(of keys: some Sequence<[UInt8]>) -> Int {
        keys.reduce(0) { $0 + $1.count + entrySizeBytes }
    }

    /// Notes what a document's update version is now, nil when it isn't in the window.
    /// - Throws: RESOURCE_EXHAUSTED when the client may not hold so much.
    func change(_ key: [UInt8], to version: Int64?) throws(Status) {
        if let version { return try note(key, version) }
        if versions.removeValue(forKey: key) == nil { return }
        sizeBytes -= key.count + Self.entrySizeBytes
        // What shrinks a little keeps what it has; a window mostly stays as large as it is.
        if memory.bytes - sizeBytes > 2 * Self.stepBytes { memory.resize(to: sizeBytes + Self.stepBytes) }
    }

    /// - Throws: RESOURCE_EXHAUSTED when the client may not hold so much.
    func note(_ key: [UInt8], _ version: Int64) throws(Status) {
        guard versions.updateValue(version, forKey: key) == nil else { return }
        sizeBytes += key.count + Self.entrySizeBytes
        if sizeBytes <= memory.bytes { return }
        if !memory.resize(to: sizeBytes + Self.stepBytes) { throw Self.isFull }
    }

    /// - Parameter sizeBytes: see `sizeBytes(of:)`.
    /// - Throws: RESOURCE_EXHAUSTED, and leaves everything as it was.
    func replace(with versions: [[UInt8]: Int64], sizeBytes: Int) throws(Status) {
        // What shrinks a little keeps what it has; a window mostly stays as large as it is.
        let isEnough = sizeBytes <= memory.bytes && memory.bytes - sizeBytes <= 2 * Self.stepBytes
        if !isEnough, !memory.resize(to: sizeBytes) { throw Self.isFull }
        self.versions = versions
        self.sizeBytes = sizeBytes
    }
}
