import CSQLite
import Synchronization

@testable import HearthSQLite

/// Observes below SQLite how checkpoints begin: on which state of the log, and with which locks.
///
/// The file methods of one connection are replaced by ones that check the locks. A checkpoint locks slot 1 of the WAL's
/// index; one that isn't PASSIVE locks slot 0, the writer's, too. Source: "WAL-mode File Format", section 2.3.
enum CheckpointProbe {
    struct Figures {
        var passive = 0
        /// PASSIVE on a fully copied log, which SQLite's defect needs.
        var passiveOnCopiedLog = 0
        var locked = 0
    }

    private struct Watch {
        var below: sqlite3_io_methods
        var figures: @Sendable ((inout Figures) -> Void) -> Void
        var isCopiedLog = false
        var isWriterLocked = false
    }

    private static let watches = Mutex<[UInt: Watch]>([:])

    /// - Parameter figures: changed whenever a checkpoint of the connection ends.
    static func install(_ connection: Connection, _ figures: @escaping @Sendable ((inout Figures) -> Void) -> Void) {
        var file: UnsafeMutablePointer<sqlite3_file>?
        sqlite3_file_control(connection.handle, nil, SQLITE_FCNTL_FILE_POINTER, &file)
        guard let file, let below = file.pointee.pMethods?.pointee else { fatalError("the connection has no file") }
        var methods = below
        methods.xShmLock = { file, slot, count, flags in CheckpointProbe.lock(file!, slot, count, flags) }
        methods.xClose = { file in CheckpointProbe.close(file!) }
        // Lives as long as the process: the code that closes the file still uses it.
        let lasting = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
        lasting.initialize(to: methods)
        watches.withLock { $0[UInt(bitPattern: file)] = Watch(below: below, figures: figures) }
        file.pointee.pMethods = UnsafePointer(lasting)
    }

    private static func watch(_ file: UnsafeMutablePointer<sqlite3_file>) -> Watch {
        watches.withLock { $0[UInt(bitPattern: file)]! }
    }

    private static func close(_ file: UnsafeMutablePointer<sqlite3_file>) -> Int32 {
        let watch = watches.withLock { $0.removeValue(forKey: UInt(bitPattern: file))! }
        return watch.below.xClose(file)
    }

    private static func lock(
        _ file: UnsafeMutablePointer<sqlite3_file>, _ slot: Int32, _ count: Int32, _ flags: Int32
    ) -> Int32 {
        var watch = watch(file)
        let result = watch.below.xShmLock(file, slot, count, flags)
        guard result == SQLITE_OK, count == 1 else { return result }
        switch (slot, flags) {
        case (0, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE): watch.isWriterLocked = true
        case (1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE):
            watch.isWriterLocked = false
            watch.isCopiedLog = isCopiedLog(file, watch.below)
        case (1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE):
            watch.figures { figures in
                if watch.isWriterLocked { return figures.locked += 1 }
                figures.passive += 1
                if watch.isCopiedLog { figures.passiveOnCopiedLog += 1 }
            }
        default: return result
        }
        let changed = watch
        watches.withLock { $0[UInt(bitPattern: file)] = changed }
        return result
    }

    /// The header, as the documentation of the format has it: "mxFrame" at 16, "nBackfill" at 96.
    private static func isCopiedLog(_ file: UnsafeMutablePointer<sqlite3_file>, _ methods: sqlite3_io_methods) -> Bool {
        var region: UnsafeMutableRawPointer?
        guard methods.xShmMap(file, 0, 32_768, 0, &region) == SQLITE_OK, let region else { return true }
        let pages = region.load(fromByteOffset: 16, as: UInt32.self)
        return pages > 0 && region.load(fromByteOffset: 96, as: UInt32.self) == pages
    }
}
