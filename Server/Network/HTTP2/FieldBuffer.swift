/// The fields of the present header block, in memory that is reused: one per loop.
///
/// A field is two 32-bit lengths, the name, the value.
package final class FieldBuffer {
    package init() {}

    private var memory = UnsafeMutableRawPointer.allocate(byteCount: 2_048, alignment: 8)
    private var capacity = 2_048
    package private(set) var sizeBytes = 0
    private(set) var count = 0

    static let lengthsBytes = 8

    deinit { memory.deallocate() }

    package func reset() {
        sizeBytes = 0
        count = 0
    }

    /// The caller limits the size.
    package func append(name: UnsafeBufferPointer<UInt8>, value: UnsafeBufferPointer<UInt8>) {
        let added = FieldBuffer.lengthsBytes + name.count + value.count
        if sizeBytes + added > capacity { grow(sizeBytes + added) }
        let start = memory + sizeBytes
        start.storeBytes(of: UInt32(name.count), as: UInt32.self)
        (start + 4).storeBytes(of: UInt32(value.count), as: UInt32.self)
        if let base = name.baseAddress { (start + 8).copyMemory(from: base, byteCount: name.count) }
        if let base = value.baseAddress { (start + 8 + name.count).copyMemory(from: base, byteCount: value.count) }
        sizeBytes += added
        count += 1
    }

    /// Restores a former state of `bytes` and `count`.
    func restore(_ saved: [UInt8], count: Int) {
        reset()
        if saved.count > capacity { grow(saved.count) }
        saved.withUnsafeBytes { saved in
            if let base = saved.baseAddress { memory.copyMemory(from: base, byteCount: saved.count) }
        }
        sizeBytes = saved.count
        self.count = count
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: sizeBytes) }

    private func grow(_ needed: Int) {
        let larger = UnsafeMutableRawPointer.allocate(byteCount: 2 * needed, alignment: 8)
        larger.copyMemory(from: memory, byteCount: sizeBytes)
        memory.deallocate()
        memory = larger
        capacity = 2 * needed
    }
}
