import HearthConcurrency

/// A fixed buffer that collects the bytes of one flush: one per loop. Frames and bodies of many responses are sent with
/// one system call, and an idle connection owns no output memory.
package final class OutputScratch {
    private let memory: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { memory.deallocate() }

    package var space: Int { memory.count - count }
    var isEmpty: Bool { count == 0 }
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    func reset() { count = 0 }

    /// The caller has checked `space`. Otherwise nothing is written.
    package func append(_ source: UnsafeRawPointer, _ length: Int) throws(BrokenInvariant) {
        try append(length) { memory throws(BrokenInvariant) in memory.copyMemory(from: source, byteCount: length) }
    }

    /// `fill` writes exactly `length` bytes, unless it throws.
    func append(
        _ length: Int, _ fill: (UnsafeMutableRawPointer) throws(BrokenInvariant) -> Void
    ) throws(BrokenInvariant) {
        guard length >= 0, length <= space else { throw BrokenInvariant("output fits into the scratch") }
        guard length > 0, let base = memory.baseAddress else { return }
        try fill(base + count)
        count += length
    }
}
