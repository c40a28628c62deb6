@testable import HearthModel
import CSQLite
import Foundation
import Glibc
import Synchronization

/// Makes the disk fail for files in a folder. SQLite's system calls are replaced for the whole process; calls for files
/// in other folders are passed on.
enum DiskFaults {
    /// The faults: it decides for each call, by its number since the plan was set.
    struct Plan: Sendable {
        var folder: String
        /// ENOSPC, EIO and others.
        var code: Int32
        /// Whether reads fail, too.
        var includesReads = false
        var isDue: @Sendable (_ call: Int) -> Bool
    }

    private struct Planted {
        var plan: Plan
        var calls = 0
        var faults = 0
    }

    /// By folder.
    private static let planted = Mutex([String: Planted]())
    private static let isPlanted = Atomic(false)
    /// The code of the last fault.
    private static let code = Atomic(EIO)

    static func plant(_ plan: Plan) {
        _ = installed
        planted.withLock { planted in
            planted[plan.folder] = Planted(plan: plan)
            isPlanted.store(true, ordering: .releasing)
        }
    }

    /// - Returns: the number of faults.
    @discardableResult
    static func remove(from folder: String) -> Int {
        planted.withLock { planted in
            let removed = planted.removeValue(forKey: folder)
            if planted.isEmpty { isPlanted.store(false, ordering: .releasing) }
            return removed?.faults ?? 0
        }
    }

    /// The faults of the present plan.
    static func count(in folder: String) -> Int { planted.withLock { $0[folder]?.faults ?? 0 } }

    fileprivate static func fails(_ descriptor: Int32, isRead: Bool) -> Bool {
        guard isPlanted.load(ordering: .acquiring) else { return false }
        let saved = errno
        defer { errno = saved }
        var path = [UInt8](repeating: 0, count: 4096)
        let count = path.withUnsafeMutableBytes {
            readlink("/proc/self/fd/\(descriptor)", $0.baseAddress!.assumingMemoryBound(to: CChar.self), 4096)
        }
        guard count > 0 else { return false }
        let name = String(decoding: path[..<count], as: UTF8.self)
        return planted.withLock { planted in
            guard let folder = planted.keys.first(where: { name.hasPrefix($0) }), var found = planted[folder] else {
                return false
            }
            if isRead, !found.plan.includesReads { return false }
            found.calls += 1
            let isDue = found.plan.isDue(found.calls - 1)
            if isDue { found.faults += 1 }
            planted[folder] = found
            if isDue { code.store(found.plan.code, ordering: .relaxed) }
            return isDue
        }
    }

    fileprivate static func fail() -> Int {
        errno = code.load(ordering: .relaxed)
        return -1
    }

    private typealias Write = @convention(c) (Int32, UnsafeRawPointer?, Int, off_t) -> Int
    private typealias Read = @convention(c) (Int32, UnsafeMutableRawPointer?, Int, off_t) -> Int
    private typealias Truncate = @convention(c) (Int32, off_t) -> Int32
    private typealias Sync = @convention(c) (Int32) -> Int32

    private static let installed: Bool = {
        guard let layer = sqlite3_vfs_find("unix-excl") else { return false }
        func exchange(_ names: [String], _ call: sqlite3_syscall_ptr) {
            for name in names where layer.pointee.xGetSystemCall(layer, name) != nil {
                _ = layer.pointee.xSetSystemCall(layer, name, call)
            }
        }
        let write: Write = { descriptor, bytes, size, offset in
            DiskFaults.fails(descriptor, isRead: false) ? DiskFaults.fail() : pwrite(descriptor, bytes, size, offset)
        }
        let read: Read = { descriptor, bytes, size, offset in
            DiskFaults.fails(descriptor, isRead: true) ? DiskFaults.fail() : pread(descriptor, bytes, size, offset)
        }
        let truncate: Truncate = { descriptor, size in
            DiskFaults.fails(descriptor, isRead: false) ? Int32(DiskFaults.fail()) : ftruncate(descriptor, size)
        }
        let sync: Sync = { descriptor in
            DiskFaults.fails(descriptor, isRead: false) ? Int32(DiskFaults.fail()) : fsync(descriptor)
        }
        exchange(["pwrite", "pwrite64"], unsafeBitCast(write, to: sqlite3_syscall_ptr.self))
        exchange(["pread", "pread64"], unsafeBitCast(read, to: sqlite3_syscall_ptr.self))
        exchange(["ftruncate"], unsafeBitCast(truncate, to: sqlite3_syscall_ptr.self))
        exchange(["fsync", "fdatasync"], unsafeBitCast(sync, to: sqlite3_syscall_ptr.self))
        return true
    }()
}
