import HearthCache

/// The tables of the cache's file, and the migration of files of an older version.
///
/// A SQLite 3 database with `application_id` "HRTC" and the version in `user_version`. Strings are blobs of their UTF-8
/// bytes, times are microseconds since 1970, keys of documents and collections have the form of `CacheKey`. Values and
/// writes are protobuf of google.firestore.v1.
///
/// A document's key is stored once, in `documents`; all other tables refer to the row's number. So a row of `documents` is there as
/// long as anything knows the key, and `kind` 0 says that there is no document. Each row has one in `sentinels`.
extension CacheSchema {
    /// "HRTC"
    private static let firestoreID = 0x4852_5443
    static let pageSizeBytes = 4096
    static let current = CacheSchema(
        applicationID: firestoreID,
        steps: [
            Step(number: 1, string: first), Step(number: 2, string: streamIDs), Step(number: 3, string: journalNumber),
        ])

    /// A released step is never edited: a change is a new step.
    private static let first = """
        CREATE TABLE globals (
            id INTEGER PRIMARY KEY CHECK (id = 1), app_name BLOB NOT NULL, project BLOB NOT NULL, database BLOB NOT NULL,
            highest_target_id INTEGER NOT NULL DEFAULT 0, highest_sequence_number INTEGER NOT NULL DEFAULT 0,
            highest_batch_id INTEGER NOT NULL DEFAULT 0, last_snapshot_version INTEGER NOT NULL DEFAULT 0,
            target_count INTEGER NOT NULL DEFAULT 0);
        CREATE TABLE users (
            id INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, last_stream_token BLOB NOT NULL DEFAULT x'');

        CREATE TABLE collection_groups (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
        CREATE TABLE collections (id INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, key BLOB NOT NULL UNIQUE);
        CREATE INDEX collections_by_group ON collections (group_id);

        CREATE TABLE documents (
            id INTEGER PRIMARY KEY, collection_id INTEGER NOT NULL, group_id INTEGER NOT NULL, key BLOB NOT NULL UNIQUE,
            kind INTEGER NOT NULL DEFAULT 0, is_committed INTEGER NOT NULL DEFAULT 0,
            version INTEGER NOT NULL DEFAULT 0, create_time INTEGER NOT NULL DEFAULT 0,
            read_time INTEGER NOT NULL DEFAULT 0, fields BLOB);
        CREATE INDEX documents_by_collection ON documents (collection_id, read_time) WHERE kind > 0;
        CREATE INDEX documents_by_group ON documents (group_id, read_time, key) WHERE kind > 0;
        CREATE TABLE sentinels (document_id INTEGER PRIMARY KEY, sequence_number INTEGER NOT NULL);

        CREATE TABLE mutations (
            batch_id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL, local_write_time INTEGER NOT NULL,
            base_writes BLOB NOT NULL, writes BLOB NOT NULL);
        CREATE INDEX mutations_by_user ON mutations (user_id, batch_id);
        CREATE TABLE document_mutations (
            document_id INTEGER NOT NULL, user_id INTEGER NOT NULL, batch_id INTEGER NOT NULL,
            PRIMARY KEY (document_id, user_id, batch_id)) WITHOUT ROWID;
        CREATE TABLE overlays (
            user_id INTEGER NOT NULL, document_id INTEGER NOT NULL, collection_id INTEGER NOT NULL,
            group_id INTEGER NOT NULL, largest_batch_id INTEGER NOT NULL, mutation BLOB NOT NULL,
            PRIMARY KEY (document_id, user_id));
        CREATE INDEX overlays_by_collection ON overlays (user_id, collection_id, largest_batch_id);
        CREATE INDEX overlays_by_group ON overlays (user_id, group_id, largest_batch_id);

        CREATE TABLE targets (
            target_id INTEGER PRIMARY KEY, canonical_id BLOB NOT NULL, sequence_number INTEGER NOT NULL,
            snapshot_version INTEGER NOT NULL, last_limbo_free_version INTEGER NOT NULL, resume_token BLOB NOT NULL,
            target BLOB NOT NULL);
        CREATE INDEX targets_by_canonical_id ON targets (canonical_id);
        CREATE TABLE target_documents (
            target_id INTEGER NOT NULL, document_id INTEGER NOT NULL,
            PRIMARY KEY (target_id, document_id)) WITHOUT ROWID;
        CREATE INDEX target_documents_by_document ON target_documents (document_id);

        CREATE TABLE bundles (
            id BLOB PRIMARY KEY, create_time INTEGER NOT NULL, version INTEGER NOT NULL,
            total_documents INTEGER NOT NULL, total_bytes INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE named_queries (name BLOB PRIMARY KEY, read_time INTEGER NOT NULL, query BLOB NOT NULL);

        CREATE TABLE indexes (
            id INTEGER PRIMARY KEY AUTOINCREMENT, collection_group BLOB NOT NULL, segments BLOB NOT NULL);
        CREATE TABLE index_states (
            user_id INTEGER NOT NULL, index_id INTEGER NOT NULL, sequence_number INTEGER NOT NULL,
            read_time INTEGER NOT NULL, key BLOB NOT NULL, largest_batch_id INTEGER NOT NULL,
            PRIMARY KEY (user_id, index_id)) WITHOUT ROWID;
        CREATE TABLE index_entries (
            index_id INTEGER NOT NULL, user_id INTEGER NOT NULL, entry BLOB NOT NULL, document_id INTEGER NOT NULL,
            PRIMARY KEY (index_id, user_id, entry)) WITHOUT ROWID;
        CREATE INDEX index_entries_by_document ON index_entries (document_id, user_id, index_id);
        """

    private static let streamIDs = "ALTER TABLE users ADD COLUMN last_stream_id BLOB NOT NULL DEFAULT x'';"

    private static let journalNumber = "ALTER TABLE globals ADD COLUMN journal_number INTEGER NOT NULL DEFAULT 0;"
}
