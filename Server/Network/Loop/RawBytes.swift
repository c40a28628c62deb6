import Glibc

extension UnsafeRawBufferPointer {
    /// `memcmp`, and no iterator: this runs for every field of every request.
    func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    func equals(_ string: StaticString) -> Bool {
        equals(UnsafeRawBufferPointer(start: string.utf8Start, count: string.utf8CodeUnitCount))
    }
}
