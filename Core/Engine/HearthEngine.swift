// HearthEngine: the contract between Hearth and a storage engine, and what every engine and its users share.
//
// Begin at `Store`: an ordered key-value store with snapshots and atomic, durable groups.
//
// - `Table/`: ordered maps in memory, with versions that readers hold. `Memory/` makes a store of them.
// - `Log/`: `LoggedStore`, a log and a table in front of another store. The server does not use it yet.
// - `SQLite/` is the module `HearthSQLite`: the store on a disk.
// - `DeferredStore` makes a store's files when there is something worth keeping.
// - `LongReads` bounds how many snapshots are held for long, and for how long.
// - `Writing/`: the steps of a group of writes, and how much each client may have waiting, for both products.
// - `StoreHealth`, `StoreObserver` and `StoreStatistics` are for operators.
//
// Nothing here knows documents, trees of the Realtime Database, or a network.
