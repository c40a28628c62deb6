import HearthConcurrency
import HearthModel

/// The documents that the client of a target has of a query with a limit or an offset, with their update versions.
///
/// Its memory is reserved on the client's account, so that thousands of targets with large limits fail before they fill
/// the server. Belongs to one thread at a time: first to the loading thread, then to the stream's loop.
final class ListenWindow {
    private(set) var versions: [[UInt8]: Int64] = [:]
    /// The version of the recorded state.
    var version: Int64 = 0
    private var sizeBytes = 0
    private let memory: MemoryReservation

    /// Memory of a document, in addition to the bytes of its key.
    private static let entrySizeBytes = 96
    /// The extra memory of each reservation, because every reservation reads a shared counter.
    private static let stepBytes = 16 << 10

    static let isFull = Status(
        .resourceExhausted,
        "The targets with a limit or an offset hold more documents than the server has memory for. Lower their limits, or "
            + "remove some of them.")

    init(_ memory: MemoryReservation) { self.memory = memory }

    static func sizeBytes(of keys: some Sequence<[UInt8]>) -> Int {
        keys.reduce(0) { $0 + $1.count + entrySizeBytes }
    }

    /// Records a document's update version, nil when it is not in the window.
    /// - Throws: RESOURCE_EXHAUSTED when the client has used its share.
    func change(_ key: [UInt8], to version: Int64?) throws(Status) {
        if let version { return try note(key, version) }
        if versions.removeValue(forKey: key) == nil { return }
        sizeBytes -= key.count + Self.entrySizeBytes
        // A window that shrinks a little keeps its memory; most windows do not change their size.
        if memory.bytes - sizeBytes > 2 * Self.stepBytes { memory.resize(to: sizeBytes + Self.stepBytes) }
    }

    /// - Throws: RESOURCE_EXHAUSTED when the client has used its share.
    func note(_ key: [UInt8], _ version: Int64) throws(Status) {
        guard versions.updateValue(version, forKey: key) == nil else { return }
        sizeBytes += key.count + Self.entrySizeBytes
        if sizeBytes <= memory.bytes { return }
        if !memory.resize(to: sizeBytes + Self.stepBytes) { throw Self.isFull }
    }

    /// - Parameter sizeBytes: see `sizeBytes(of:)`.
    /// - Throws: RESOURCE_EXHAUSTED; then nothing has changed.
    func replace(with versions: [[UInt8]: Int64], sizeBytes: Int) throws(Status) {
        // A window that shrinks a little keeps its memory; most windows do not change their size.
        let isEnough = sizeBytes <= memory.bytes && memory.bytes - sizeBytes <= 2 * Self.stepBytes
        if !isEnough, !memory.resize(to: sizeBytes) { throw Self.isFull }
        self.versions = versions
        self.sizeBytes = sizeBytes
    }
}
