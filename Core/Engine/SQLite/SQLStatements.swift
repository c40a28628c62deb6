import HearthEngine

extension Keyspace {
    /// The keyspace's table.
    var table: String {
        switch self {
        case .documents: "documents"
        case .entries: "entries"
        case .feed: "feed"
        case .meta: "meta"
        }
    }
}

/// A statement that runs from start to end in one call, so that one of each kind is enough for a connection.
///
/// `?1` is the key or the lower bound; `?2` the value or the upper bound; `?3` a number of keys.
enum StatementKind: Int, CaseIterable {
    case get, put, delete
    case count, countUpTo, keyAfter, deleteRange, deleteAll

    /// - Parameter bounded: whether the range has an upper bound.
    func string(_ keyspace: Keyspace, bounded: Bool) -> String {
        let table = keyspace.table
        let range = StatementShape.condition(bounded: bounded)
        return switch self {
        case .get: "SELECT value FROM \(table) WHERE key = ?1"
        case .put:
            // Not REPLACE: that deletes the row and inserts it anew, which in a rowid table rewrites the key index too.
            "INSERT INTO \(table) (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        case .delete: "DELETE FROM \(table) WHERE key = ?1"
        case .count: "SELECT count(*) FROM \(table) WHERE \(range)"
        case .countUpTo: "SELECT count(*) FROM (SELECT 1 FROM \(table) WHERE \(range) LIMIT ?3)"
        case .keyAfter: "SELECT key FROM \(table) WHERE \(range) ORDER BY key LIMIT 1 OFFSET ?3"
        case .deleteRange: "DELETE FROM \(table) WHERE \(range)"
        // Without a condition SQLite drops the table's pages and visits no row. Source: lang_delete.html#truncateopt.
        case .deleteAll: "DELETE FROM \(table)"
        }
    }

    static var indexCount: Int { allCases.count * Keyspace.allCases.count * 2 }

    @inline(__always)
    func index(_ keyspace: Keyspace, bounded: Bool) -> Int {
        (rawValue * Keyspace.allCases.count + keyspace.rawValue) * 2 + (bounded ? 1 : 0)
    }
}

/// The parameters that distinguish the statements of walks over a range.
struct StatementShape {
    var keyspace: Keyspace
    var reverse: Bool
    var values: Bool
    /// Whether the range has an upper bound.
    var bounded: Bool

    static let indexCount = Keyspace.allCases.count * 8

    var index: Int {
        keyspace.rawValue * 8 + (reverse ? 4 : 0) + (values ? 2 : 0) + (bounded ? 1 : 0)
    }

    var string: String {
        """
        SELECT \(values ? "key, value" : "key") FROM \(keyspace.table) \
        WHERE \(Self.condition(bounded: bounded)) ORDER BY key\(reverse ? " DESC" : "")
        """
    }

    static func condition(bounded: Bool) -> String {
        bounded ? "key >= ?1 AND key < ?2" : "key >= ?1"
    }
}

enum TransactionControl: Int, CaseIterable {
    case begin, commit, rollBack

    var string: String {
        switch self {
        // IMMEDIATE: a transaction that began as a reader couldn't become a writer after another's commit.
        case .begin: "BEGIN IMMEDIATE"
        case .commit: "COMMIT"
        case .rollBack: "ROLLBACK"
        }
    }

    /// The name of the action in the error.
    var action: String {
        switch self {
        case .begin: "cannot begin a commit"
        case .commit: "cannot store the commit"
        case .rollBack: "cannot roll back"
        }
    }
}
