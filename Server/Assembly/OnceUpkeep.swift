import HearthDocuments
import HearthHost

/// Deletes from databases what makes commits happen once, when it is old.
struct OnceUpkeep: Sendable {
    /// The collection of which old documents are deleted in each database; empty for none.
    let collection: String
    /// Each step begins on a thread of its own: the writer, which ends them, must not search for the next one.
    let threads: LifecycleThreads

    func run(_ database: Database) {
        deleteAnswers(database)
        deleteDocuments(database)
    }

    private func deleteAnswers(_ database: Database) {
        database.deleteOldOnceAnswers { result in
            guard case .success(true) = result else { return }
            threads.run { deleteAnswers(database) }
        }
    }

    private func deleteDocuments(_ database: Database) {
        database.deleteOldLedgerDocuments(of: collection) { result in
            guard case .success(true) = result else { return }
            threads.run { deleteDocuments(database) }
        }
    }
}
