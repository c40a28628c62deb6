// HearthSQLite: the contract `Store` on files of SQLite. docs/internals/sqlite.md has the reasons and the figures.
//
// Begin at `SQLiteStore`: one database, a file with its log. `SQLiteStoreProvider` finds and opens them in a folder.
//
// - `WriterConnection` and `WriterGate`: one writer; `SQLiteTransaction` is its view.
// - `ReaderPool`, `ReaderMemory` and `SQLiteSnapshot`: readers, and how long they hold a version.
// - `Checkpointer`, `WALBounds`, `LogBuffer` and `LogIndex`: the log, its length, and how it is copied into the file.
// - `DataFolder`, `DatabaseFileName`, `FileFormat` and `FileHeader`: what lies on the disk.
// - `CacheBudget` and `PageCache`: the memory that all databases share.
