import HearthModel
import HearthEngine
import Glibc

/// The resources of a store.
package struct SQLiteStoreOptions: Sendable {
    /// Short reads at a time; more fail with RESOURCE_EXHAUSTED. Each runs on one thread, and ends there.
    package var readersMax = 64
    /// Snapshots of long reads at a time. `LongReads` admits half as many in the whole process, each of which has one,
    /// or two that it compares; so none fails because of this bound.
    package var longReadersMax = 2 * Limits.longReadsMax
    /// The budget of the pages that writers keep in memory.
    var writerCache = CacheBudget.writers
    /// The budget of the pages that readers keep in memory.
    var readerMemory = ReaderMemory.process
    /// Bytes of the file that are memory-mapped. Halves the time of reads without writes; but a mapped page is looked
    /// up in the WAL at each use, and the mapping is renewed after each commit: a reader's first read after a commit
    /// takes twice as long.
    package var mappedBytes = 0

    /// Leaves the files unchanged: nothing is made or migrated to this version, `write` fails, and the log isn't
    /// copied. For reading a folder, also a damaged one.
    package var isReadOnly = false
    /// Whether a `LoggedStore`'s log is there, which is begun when the file has contents.
    var hasLog = false

    /// When the WAL is copied into the database, and the consequences when it can't be.
    package var bounds = WALBounds()
    /// Pages of the database at most: a small disk for tests.
    var pagesMax: Int?
    /// Is notified when commits or checkpoints begin to fail, and when they succeed again.
    package var observer: (any StoreObserver)?
    /// The images of files that are open, also of stores that are closed.
    let images = SQLiteImages()
    /// How long after a failure the disk is tried again.
    var retryMilliseconds = 1000
    /// For tests of checkpoints: receives the connection that makes them.
    var checkpointConnectionOpened: (@Sendable (Connection) -> Void)?

    package init() {}

    var writerConfiguration: [String] {
        var strings = [
            // Overwriting deleted data costs writes of pages that are otherwise only unlinked.
            "PRAGMA secure_delete = OFF",
            "PRAGMA mmap_size = \(mappedBytes)",
            "PRAGMA temp_store = MEMORY",
        ]
        if let pagesMax { strings.append("PRAGMA max_page_count = \(pagesMax)") }
        return strings
    }

    var readerConfiguration: [String] {
        [
            "PRAGMA query_only = ON",
            "PRAGMA mmap_size = \(mappedBytes)",
            "PRAGMA temp_store = MEMORY",
        ]
    }
}
