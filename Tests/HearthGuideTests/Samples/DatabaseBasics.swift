import HearthDatabase

enum DatabaseBasics {
    static func connect() -> Database {
        // sample: db-connect
        FirebaseApp.configure(options: FirebaseOptions(projectID: "demo"))
        let database = Database.database(url: "http://127.0.0.1:8080?ns=demo-default-rtdb")
        database.callbackQueue = DispatchQueue(label: "chat")
        let root = database.reference()
        // end
        return root.database
    }

    static func first(_ root: DatabaseReference) async throws -> String? {
        // sample: db-first
        let line = root.child("rooms/main/first")
        try await line.setValue(["text": "Hello", "by": "eva"])
        let text = try await line.child("text").getData().value as? String
        print(text ?? "nothing")
        // end
        return text
    }

    static func write(_ root: DatabaseReference) async throws {
        // sample: db-write
        let user = root.child("users/eva")
        try await user.setValue(["name": "Eva", "age": 41, "tags": ["a", "b"]] as [String: Any])
        try await user.child("age").setValue(42)
        try await user.updateChildValues(["city/name": "Bern", "tags": NSNull()])
        // end
    }

    static func remove(_ root: DatabaseReference) async throws {
        // sample: db-remove
        try await root.child("users/eva").removeValue()
        // end
    }

    static func later(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) {
        // sample: db-completion
        root.child("users/adam/name").setValue("Adam") { error, reference in
            show(error?.localizedDescription ?? "\(reference.key ?? "") is saved")
        }
        // end
    }

    static func server(_ root: DatabaseReference) async throws {
        // sample: db-server-values
        try await root.child("users/eva").updateChildValues([
            "seen": ServerValue.timestamp(), "visits": ServerValue.increment(1),
        ])
        // end
    }

    static func read(_ root: DatabaseReference) async throws -> (String?, Int, [String]) {
        // sample: db-read
        let snapshot = try await root.child("users/eva").getData()
        let user = snapshot.value as? [String: Any]
        let name = user?["name"] as? String
        let age = snapshot.childSnapshot(forPath: "age").value as? Int ?? 0
        var keys: [String] = []
        for case let child as DataSnapshot in snapshot.children { keys.append(child.key) }
        // end
        return (name, age, keys)
    }

    // sample: db-codable-type
    struct Line: Codable {
        var text: String
        var by: String
        @ServerTimestamp var at: Date?
    }
    // end

    static func codable(_ root: DatabaseReference, _ show: @escaping @Sendable (String) -> Void) throws {
        // sample: db-codable
        let line = root.child("rooms/main").childByAutoId()
        try line.setValue(from: Line(text: "Hi", by: "eva")) { error in show(error == nil ? "saved" : "refused") }
        // end
    }

    static func decode(_ snapshot: DataSnapshot) throws -> Line {
        // sample: db-decode
        let line = try snapshot.data(as: Line.self)
        // end
        return line
    }

    static func fanOut(_ root: DatabaseReference) async throws -> String? {
        // sample: db-fan-out
        let key = root.child("posts").childByAutoId().key ?? ""
        let post: [String: Any] = ["by": "eva", "title": "Bread", "at": ServerValue.timestamp()]
        try await root.updateChildValues(["posts/\(key)": post, "posts-by/eva/\(key)": post])
        // end
        return key
    }
}
