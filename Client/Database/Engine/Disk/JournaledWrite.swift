import HearthModel
import HearthTree

/// A call's write as the journal has it. The form, numbers in little endian: the time (8 bytes, milliseconds since
/// 1970), whether it is a merge (1), the size of the path (4), the path, the data as in `DiskWrites`.
enum JournaledWrite {
    static func encode(_ write: PendingWrite) -> [UInt8] {
        let path = Array(write.path.string.utf8)
        var bytes: [UInt8] = []
        withUnsafeBytes(of: write.madeAtMilliseconds.littleEndian) { bytes += $0 }
        bytes.append(write.isMerge ? 1 : 0)
        withUnsafeBytes(of: UInt32(path.count).littleEndian) { bytes += $0 }
        return bytes + path + DiskWrites.data(of: write)
    }

    /// - Throws: when the contents have another form.
    static func decode(_ bytes: [UInt8], id: Int64) throws(Status) -> PendingWrite {
        let headSize = 13
        guard bytes.count >= headSize else { throw Status(.dataLoss, "it is too short") }
        let time = bytes[..<8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        let size = bytes[9..<headSize].reversed().reduce(0) { $0 << 8 | Int($1) }
        guard bytes.count - headSize >= size else { throw Status(.dataLoss, "it is too short") }
        return try DiskWrites.write(
            id: id, path: TreePath(String(decoding: bytes[headSize..<(headSize + size)], as: UTF8.self)),
            isMerge: bytes[8] != 0, madeAtMilliseconds: Int64(bitPattern: time),
            data: Array(bytes[(headSize + size)...]))
    }
}
