import HearthDatabase

enum DatabaseLive {
    static func value(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) -> DatabaseHandle {
        // sample: db-observe
        let handle = root.child("users/eva/name").observe(.value) { snapshot in
            show(snapshot.value as? String ?? "nobody")
        } withCancel: { error in
            show("refused: \(error.localizedDescription)")
        }
        // end
        return handle
    }

    static func stop(_ root: DatabaseReference, _ handle: DatabaseHandle) {
        // sample: db-stop
        root.child("users/eva/name").removeObserver(withHandle: handle)
        // end
    }

    static func children(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-children
        let room = root.child("rooms/main")
        room.observe(.childAdded) { line in show("+ \(line.key)") }
        room.observe(.childChanged) { line in show("~ \(line.key)") }
        room.observe(.childRemoved) { line in show("- \(line.key)") }
        // end
    }

    static func values(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) async throws {
        // sample: db-snapshots
        for try await snapshot in root.child("users/eva/name").snapshots {
            show(snapshot.value as? String ?? "nobody")
        }
        // end
    }

    static func events(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) async throws {
        // sample: db-child-events
        for try await event in root.child("rooms/main").childEvents() {
            switch event {
            case .childAdded(let line, _): show("+ \(line.key)")
            case .childChanged(let line, _): show("~ \(line.key)")
            case .childRemoved(let line): show("- \(line.key)")
            case .childMoved(let line, let previous): show("\(line.key) after \(previous ?? "none")")
            }
        }
        // end
    }

    static func saving(_ database: Database, _ show: @escaping @Sendable (String) -> Void) async throws {
        // sample: db-pending
        for try await count in database.pendingWriteCounts {
            show(count == 0 ? "saved" : "saving \(count)")
        }
        // end
    }

    static func queries(_ root: DatabaseReference) -> [DatabaseQuery] {
        // sample: db-queries
        let people = root.child("people")
        let oldest = people.queryOrdered(byChild: "age").queryLimited(toLast: 2)
        let young = people.queryOrdered(byChild: "age").queryEnding(beforeValue: 40)
        let fromB = people.queryOrderedByKey().queryStarting(atValue: "b")
        let named = people.queryOrdered(byChild: "name").queryEqual(toValue: "Eva")
        // end
        return [oldest, young, fromB, named]
    }

    static func transaction(_ root: DatabaseReference) async throws -> (Bool, Int?) {
        // sample: db-transaction
        let (isCommitted, snapshot) = try await root.child("posts/p1").runTransactionBlock { data in
            guard var post = data.value as? [String: Any] else { return .success(withValue: data) }
            post["stars"] = (post["stars"] as? Int ?? 0) + 1
            data.value = post
            return .success(withValue: data)
        }
        // end
        return (isCommitted, snapshot.childSnapshot(forPath: "stars").value as? Int)
    }

    static func presence(_ root: DatabaseReference) {
        // sample: db-presence
        let status = root.child("status/eva")
        root.child(".info/connected").observe(.value) { snapshot in
            guard snapshot.value as? Bool == true else { return }
            status.onDisconnectSetValue(["online": false, "last": ServerValue.timestamp()] as [String: Any])
            status.setValue(["online": true])
        }
        // end
    }

    static func network(_ database: Database) {
        // sample: db-network
        database.goOffline()
        database.goOnline()
        // end
    }

    static func persistence(_ database: Database, _ folder: URL) {
        // sample: db-persistence
        database.isPersistenceEnabled = true
        database.persistenceDirectory = folder
        database.reference(withPath: "people").keepSynced(true)
        // end
    }

    static func signIn(_ app: FirebaseApp, _ token: String) async throws {
        // sample: db-sign-in
        try await Auth.auth(app: app).signIn(withCustomToken: token)
        // end
    }

    static func refused(_ root: DatabaseReference) async -> String {
        // sample: db-refused
        do {
            try await root.child("locked").setValue(1)
            return "written"
        } catch let error as NSError where error.domain == "com.firebase" && error.code == 1 {
            return "The rules don't let this user write here."
        } catch {
            return "\(error)"
        }
        // end
    }
}
