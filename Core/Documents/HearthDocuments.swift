// HearthDocuments: a Firestore database over a `Store`. It knows neither connections nor rights.
//
// Begin at `Database`: everything that a server asks of one is a method of it.
//
// - `Keys/` and `Indexes/`: how documents and index entries are laid out in the store.
// - `Commits/`: `CommitPipeline` is the one way by which a database changes; a `CommitGuard` decides whether it may.
// - `Transactions/`: locks, read sets and their validation.
// - `Queries/`: from a `NormalizedQuery` by a `QueryPlan` to streams of candidates.
// - `History/`: `ReadView` is one version, readable; `Feed` keeps what reads in the past and resumed listens need.
// - `Subscriptions/`: `ChangeHub` notifies the loops whose listeners a commit concerns.
// - `Checks/`: compares indexes with documents, and repairs them.
