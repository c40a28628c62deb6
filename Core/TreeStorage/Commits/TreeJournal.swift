import HearthModel
import HearthEngine

/// A change of the journal: the pending work for the end of a session, stored so that it can be done after a crash,
/// too.
package struct JournalChange: Sendable {
    /// The session's name; without NUL.
    package var session: String
    /// The name of one of the session's records; nil for all of them.
    package var entry: String?
    /// The new content; nil to delete it.
    package var record: [UInt8]?

    package init(session: String, entry: String, record: [UInt8]?) {
        self.session = session
        self.entry = entry
        self.record = record
    }

    private init(session: String) { self.session = session }

    /// Deletes all records of a session.
    package static func end(_ session: String) -> JournalChange { JournalChange(session: session) }

    func apply(to transaction: any StoreTransaction) throws(Status) {
        guard let entry else {
            try transaction.delete(.meta, KeyRange(prefix: TreeMeta.journal(session)), limit: .max)
            return
        }
        let key = TreeMeta.journal(session) + entry.utf8
        if let record { try transaction.put(.meta, key, record) } else { try transaction.delete(.meta, key) }
    }
}

/// The journal's records of one session.
package struct JournalSession: Sendable {
    package var session: String
    /// In the order of entries' bytes.
    package var records: [(entry: String, record: [UInt8])]

    package init(session: String, records: [(entry: String, record: [UInt8])]) {
        self.session = session
        self.records = records
    }
}

extension TreeView {
    /// The whole content of the journal.
    package func journal() throws(Status) -> [JournalSession] { try journal(KeyRange(prefix: TreeMeta.journalPrefix)) }

    /// The journal's records of one session; nil for none.
    package func journal(of session: String) throws(Status) -> JournalSession? {
        try journal(KeyRange(prefix: TreeMeta.journal(session))).first
    }

    private func journal(_ range: KeyRange) throws(Status) -> [JournalSession] {
        var found: [JournalSession] = []
        let cursor = try snapshot.scan(
            .meta, range, reverse: false, values: true,
            dropping: TreeMeta.journalPrefix.count)
        defer { cursor.close() }
        while try cursor.next() {
            let end = cursor.key.firstIndex(of: 0) ?? cursor.key.endIndex
            let session = String(decoding: cursor.key[..<end], as: UTF8.self)
            let entry = String(decoding: cursor.key[end...].dropFirst(), as: UTF8.self)
            if let last = found.last?.session, UTF8Order.equal(last, session) {
                found[found.count - 1].records.append((entry, cursor.value))
            } else {
                found.append(JournalSession(session: session, records: [(entry, cursor.value)]))
            }
        }
        return found
    }
}
