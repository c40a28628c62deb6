import HearthDatabase

enum DatabaseOffline {
    static func later(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-later
        root.child("notes/train").setValue("Written in the train") { error, _ in
            show(error.map { "rejected: \($0.localizedDescription)" } ?? "The server has it.")
        }
        // end
    }

    static func values(_ root: DatabaseReference) {
        // sample: db-offline-values
        root.child("counters/notes").setValue(ServerValue.increment(1))
        root.child("notes/changed").setValue(ServerValue.timestamp())
        // end
    }

    static func purge(_ database: Database) {
        // sample: db-offline-purge
        database.purgeOutstandingWrites()
        // end
    }

    static func get(_ root: DatabaseReference) async throws -> String {
        // sample: db-offline-get
        do {
            let note = try await root.child("notes/bike").getData()
            return note.value as? String ?? "no note"
        } catch let error as NSError where error.domain == "com.firebase.core" {
            return "This note is not on this device."
        }
        // end
    }

    static func known(_ root: DatabaseReference) async throws -> String? {
        // sample: db-offline-known
        let note = try await root.child("notes/train").observeSingleEvent(of: .value)
        // end
        return note.value as? String
    }

    static func persistence(_ database: Database, _ folder: URL) -> DatabaseReference {
        // sample: db-offline-persistence
        database.isPersistenceEnabled = true
        database.persistenceCacheSizeBytes = 50 << 20
        database.persistenceDirectory = folder
        let root = database.reference()
        root.child("people").keepSynced(true)
        root.child("news").queryOrderedByKey().queryLimited(toLast: 100).keepSynced(true)
        // end
        return root
    }

    static func signIn(_ app: FirebaseApp, _ token: String, _ url: String) async throws -> DatabaseReference {
        // sample: db-offline-sign-in
        try await Auth.auth(app: app).signIn(withCustomToken: token)
        let root = Database.database(app: app, url: url).reference()
        // end
        return root
    }

    static func rejected(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-rejected
        let note = root.child("notes/train")
        note.observe(.value) { snapshot in
            show(snapshot.value as? String ?? "no note")
        }
        note.setValue("Written without permission") { error, _ in
            guard let error = error as NSError? else { return }
            show(error.code == 1 ? "The rules reject it." : "failed: \(error.localizedFailureReason ?? "")")
        }
        // end
    }

    static func entry(_ root: DatabaseReference) {
        // sample: db-offline-entry
        root.updateChildValues(["notes/train": "Written in the train", "log/eva/1": true])
        // end
    }

    static func isMade(_ root: DatabaseReference) async throws -> Bool {
        // sample: db-offline-entry-read
        let isMade = try await root.child("log/eva/1").getData().exists()
        // end
        return isMade
    }

    static func transaction(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-transaction
        root.child("posts/p1/stars").runTransactionBlock { data in
            data.value = (data.value as? Int ?? 0) + 1
            return .success(withValue: data)
        } andCompletionBlock: { error, isCommitted, snapshot in
            show(isCommitted ? "\(snapshot?.value ?? 0) stars at the server" : "not committed")
        }
        // end
    }

    static func hidden(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-hidden
        root.child("seats/12A").runTransactionBlock(
            { seat in
                guard seat.value is NSNull else { return .abort() }
                seat.value = "eva"
                return .success(withValue: seat)
            },
            andCompletionBlock: { error, isCommitted, _ in
                show(isCommitted ? "The seat is yours." : "The seat is taken.")
            }, withLocalEvents: false)
        // end
    }

    static func connected(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-connected
        root.child(".info/connected").observe(.value) { snapshot in
            show(snapshot.value as? Bool == true ? "online" : "offline")
        }
        // end
    }

    static func time(_ root: DatabaseReference) async throws -> (Double, Date) {
        // sample: db-offline-time
        let offset = try await root.child(".info/serverTimeOffset").observeSingleEvent(of: .value).value as? Double ?? 0
        let serverTime = Date(timeIntervalSinceNow: offset / 1000)
        // end
        return (offset, serverTime)
    }

    static func goOffline(_ database: Database) {
        // sample: db-offline-off
        database.goOffline()
        // end
    }

    static func goOnline(_ database: Database) {
        // sample: db-offline-on
        database.goOnline()
        // end
    }

    static func disconnect(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-offline-disconnect
        root.child("online/eva").onDisconnectRemoveValue { error, _ in
            show(error == nil ? "The server removes it when this client is gone." : "rejected")
        }
        // end
    }
}
