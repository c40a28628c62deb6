// HearthSync: Firestore's client engine: what is kept, shown, listened to and sent. It has no sockets.
//
// Begin at `SyncClient`, the module's interface, and `SyncCore`, its parts joined on one `WorkerQueue`, which tests
// drive.
//
// - `Engine/`: views, listeners, documents in limbo, and the queue with its timers and its clock.
// - `Local/`: `LocalStore` over a `Persistence`, in memory or in SQLite: the user's writes, the server's documents.
// - `Remote/`: `RemoteStore` over a `Datastore`, which the API's module implements with gRPC.
// - `Model/`: queries, documents and mutations as the engine needs them.
