import HearthDatabase

// This file is a test by compiling. It uses every declaration of FirebaseDatabase's Swift API once, as a program for
// Apple platforms would, with only the import changed.

enum ApiSurface {
    static func database(_ app: FirebaseApp) {
        let db: Database = Database.database()
        let _: Database = Database.database(url: "https://x.firebaseio.com")
        let _: Database = Database.database(app: app)
        let _: Database = Database.database(app: app, url: "https://x.firebaseio.com")
        let _: FirebaseApp? = db.app
        let _: DatabaseReference = db.reference()
        let _: DatabaseReference = db.reference(withPath: "a/b")
        let _: DatabaseReference = db.reference(fromURL: "https://x.firebaseio.com/a")
        db.useEmulator(withHost: "localhost", port: 9000)
        db.goOffline()
        db.goOnline()
        db.purgeOutstandingWrites()
        db.isPersistenceEnabled = true
        let _: Bool = db.isPersistenceEnabled
        db.persistenceCacheSizeBytes = 20 * 1024 * 1024
        let _: UInt = db.persistenceCacheSizeBytes
        db.callbackQueue = DispatchQueue(label: "callbacks")
        let _: DispatchQueue = db.callbackQueue
        Database.setLoggingEnabled(true)
        let _: String = Database.sdkVersion()
        let _: NSObject = db
    }

    static func observing(_ query: DatabaseQuery) async throws {
        let handle: DatabaseHandle = query.observe(.value) { snapshot in print(snapshot.key) }
        query.observe(.childAdded, with: { print($0) })
        query.observe(.childRemoved, with: { print($0) }, withCancel: { error in print(error) })
        query.observe(.childRemoved, with: { print($0) }, withCancel: nil)
        query.observe(.value) {
            print($0)
        } withCancel: {
            print($0)
        }
        query.observe(.childMoved, andPreviousSiblingKeyWith: { snapshot, key in print(snapshot, key as Any) })
        query.observe(.childChanged, andPreviousSiblingKeyWith: { print($0, $1 ?? "") }, withCancel: { print($0) })
        query.observeSingleEvent(of: .value, with: { print($0) })
        query.observeSingleEvent(of: .value, with: { print($0) }, withCancel: { print($0) })
        query.observeSingleEvent(of: .childAdded, andPreviousSiblingKeyWith: { print($0, $1 ?? "") })
        query.observeSingleEvent(
            of: .childAdded, andPreviousSiblingKeyWith: { print($0, $1 ?? "") }, withCancel: { print($0) })
        let (snapshot, key): (DataSnapshot, String?) = await query.observeSingleEventAndPreviousSiblingKey(
            of: .value)
        print(snapshot, key ?? "")
        let _: DataSnapshot = try await query.observeSingleEvent(of: .value)
        query.getData { error, snapshot in print(error as Any, snapshot?.key ?? "") }
        query.getData(completion: { (_: Error?, _: DataSnapshot?) in })
        let _: DataSnapshot = try await query.getData()
        query.removeObserver(withHandle: handle)
        query.removeAllObservers()
        query.keepSynced(true)
        let _: DatabaseReference = query.ref
    }

    /// The sequences have the names that Firebase proposes for Apple platforms.
    static func sequences(_ query: DatabaseQuery) async throws {
        for try await snapshot in query.snapshots { let _: DataSnapshot = snapshot }
        for try await event in query.childEvents() {
            switch event {
            case .childAdded(let snapshot, let previousSiblingKey):
                print(snapshot, previousSiblingKey as String? as Any)
            case .childChanged(let snapshot, previousSiblingKey: _): print(snapshot)
            case .childRemoved(let snapshot): print(snapshot)
            case .childMoved(let snapshot, _): print(snapshot)
            }
        }
        let _: DatabaseQuerySnapshotsSequence = query.snapshots
        let _: DatabaseChildEventsSequence = query.childEvents()
    }

    /// A user interface iterates on the main actor.
    @MainActor static func sequencesOnTheMainActor(_ query: DatabaseQuery, _ show: (String) -> Void) async throws {
        for try await snapshot in query.snapshots { show(snapshot.key) }
        for try await event in query.childEvents() { show(event.snapshot.key) }
        for try await count in query.ref.database.pendingWriteCounts { show("\(count)") }
    }

    /// Hearth's own: not in Apple's library.
    static func additions(_ db: Database, _ ref: DatabaseReference, _ event: DatabaseEvent) async throws {
        let _: DatabaseReference = try await ref.setValue(encoding: ["a": 1])
        try await ref.setValue(encoding: ["a": 1], encoder: Database.Encoder())
        for try await count in db.pendingWriteCounts { let _: Int = count }
        let _: Database.PendingWriteCountsSequence = db.pendingWriteCounts
        let _: (DataEventType, DataSnapshot, String?) = (event.type, event.snapshot, event.previousSiblingKey)
    }

    static func queries(_ ref: DatabaseReference) {
        let _: DatabaseQuery = ref.queryLimited(toFirst: 1)
        let _: DatabaseQuery = ref.queryLimited(toLast: 1)
        let _: DatabaseQuery = ref.queryOrdered(byChild: "a/b")
        let _: DatabaseQuery = ref.queryOrderedByKey()
        let _: DatabaseQuery = ref.queryOrderedByValue()
        let _: DatabaseQuery = ref.queryOrderedByPriority()
        let _: DatabaseQuery = ref.queryStarting(atValue: 1)
        let _: DatabaseQuery = ref.queryStarting(atValue: "a", childKey: "k")
        let _: DatabaseQuery = ref.queryStarting(afterValue: nil)
        let _: DatabaseQuery = ref.queryStarting(afterValue: true, childKey: nil)
        let _: DatabaseQuery = ref.queryEnding(atValue: 1.5)
        let _: DatabaseQuery = ref.queryEnding(atValue: "a", childKey: "k")
        let _: DatabaseQuery = ref.queryEnding(beforeValue: "b")
        let _: DatabaseQuery = ref.queryEnding(beforeValue: "b", childKey: "k")
        let _: DatabaseQuery = ref.queryEqual(toValue: "b")
        let _: DatabaseQuery = ref.queryEqual(toValue: "b", childKey: "k")
        let _: DatabaseQuery = ref
    }

    static func references(_ ref: DatabaseReference) {
        let _: DatabaseReference = ref.child("a/b").childByAutoId()
        let _: DatabaseReference? = ref.parent
        let _: DatabaseReference = ref.root
        let _: String? = ref.key
        let _: String = ref.url
        let _: String = ref.description()
        let _: Database = ref.database
        DatabaseReference.goOffline()
        DatabaseReference.goOnline()
    }

    static func writes(_ ref: DatabaseReference) {
        let done: (Error?, DatabaseReference) -> Void = { error, ref in print(error as Any, ref.key ?? "") }
        ref.setValue("x")
        ref.setValue(
            ["a": 1, "b": [true, nil, "x"] as [Any?], "c": NSNull()] as [String: Any], withCompletionBlock: done)
        ref.setValue(nil) { error, _ in print(error as Any) }
        ref.setValue(1, andPriority: "p")
        ref.setValue(1, andPriority: nil, withCompletionBlock: done)
        ref.setPriority(2)
        ref.setPriority(nil, withCompletionBlock: done)
        ref.removeValue()
        ref.removeValue(completionBlock: done)
        ref.removeValue { error, _ in print(error as Any) }
        ref.updateChildValues(["a/b": 1, "c": NSNull()])
        ref.updateChildValues(["a": ServerValue.timestamp()], withCompletionBlock: done)
        ref.onDisconnectSetValue(false)
        ref.onDisconnectSetValue(ServerValue.timestamp(), withCompletionBlock: done)
        ref.onDisconnectSetValue(1, andPriority: 2)
        ref.onDisconnectSetValue(1, andPriority: nil, withCompletionBlock: done)
        ref.onDisconnectRemoveValue()
        ref.onDisconnectRemoveValue(completionBlock: done)
        ref.onDisconnectUpdateChildValues(["a": 1])
        ref.onDisconnectUpdateChildValues(["a": 1], withCompletionBlock: done)
        ref.cancelDisconnectOperations()
        ref.cancelDisconnectOperations(completionBlock: done)
        ref.cancelDisconnectOperations(completionBlock: nil)
        let likes: NSNumber = 1
        ref.child("likes").setValue(ServerValue.increment(likes))
        ref.child("likes").setValue(ServerValue.increment(-1))
        ref.child("likes").setValue(ServerValue.increment(0.5))
    }

    static func asyncWrites(_ ref: DatabaseReference) async throws {
        let _: DatabaseReference = try await ref.setValue("x")
        try await ref.setValue(1, andPriority: 2)
        try await ref.setPriority("p")
        try await ref.removeValue()
        try await ref.updateChildValues(["a": 1])
        try await ref.onDisconnectSetValue(1)
        try await ref.onDisconnectSetValue(1, andPriority: nil as Any?)
        try await ref.onDisconnectRemoveValue()
        try await ref.onDisconnectUpdateChildValues(["a": 1])
        try await ref.cancelDisconnectOperations()
    }

    static func transactions(_ ref: DatabaseReference) async throws {
        let count: @Sendable (MutableData) -> TransactionResult = { data in
            data.value = (data.value as? Int ?? 0) + 1
            return TransactionResult.success(withValue: data)
        }
        ref.runTransactionBlock(count, andCompletionBlock: { (_: Error?, _: Bool, _: DataSnapshot?) in })
        ref.runTransactionBlock(count) { error, committed, snapshot in print(error as Any, committed, snapshot as Any) }
        ref.runTransactionBlock(count, andCompletionBlock: nil, withLocalEvents: false)
        let (isCommitted, snapshot): (Bool, DataSnapshot) = try await ref.runTransactionBlock(count)
        try await ref.runTransactionBlock { _ in TransactionResult.abort() }
        print(isCommitted, snapshot)
    }

    static func plainTransaction(_ ref: DatabaseReference) {
        ref.runTransactionBlock { (currentData: MutableData) -> TransactionResult in
            if var post = currentData.value as? [String: AnyObject] {
                post["stars"] = 1 as AnyObject
                currentData.value = post
            }
            return .success(withValue: currentData)
        }
    }

    static func snapshots(_ snapshot: DataSnapshot) throws {
        struct User: Codable { var name: String }
        let _: String = snapshot.key
        let _: Any? = snapshot.value
        let _: Any? = snapshot.priority
        let _: DatabaseReference = snapshot.ref
        let _: UInt = snapshot.childrenCount
        let _: NSEnumerator = snapshot.children
        for case let child as DataSnapshot in snapshot.children { print(child.key) }
        for child in snapshot.children.allObjects as? [DataSnapshot] ?? [] { print(child.key) }
        let _: DataSnapshot = snapshot.childSnapshot(forPath: "a/b")
        let _: Bool = snapshot.hasChild("a") && snapshot.hasChildren() && snapshot.exists()
        let _: Any? = snapshot.valueInExportFormat()
        let _: User = try snapshot.data(as: User.self)
        let _: User? = try snapshot.data(as: User?.self, decoder: Database.Decoder())
        Task { print(snapshot.key) }
    }

    static func mutableData(_ data: MutableData) {
        data.value = nil
        data.value = ["a": 1]
        let _: Any? = data.value
        data.priority = 1
        let _: Any? = data.priority
        let _: String? = data.key
        let _: UInt = data.childrenCount
        for case let child as MutableData in data.children { print(child.key ?? "") }
        let _: Bool = data.hasChildren() && data.hasChild(atPath: "a/b")
        let _: MutableData = data.childData(byAppendingPath: "a")
        let _: TransactionResult = TransactionResult.success(withValue: data)
        let _: TransactionResult = .abort()
    }

    static func coding(_ ref: DatabaseReference) throws {
        struct Line: Codable, Hashable {
            var string: String
            @ServerTimestamp var at: Date?
        }
        let encoder = Database.Encoder()
        encoder.dateEncodingStrategy = .millisecondsSince1970
        encoder.dataEncodingStrategy = .base64
        encoder.nonConformingFloatEncodingStrategy = .throw
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.userInfo = [:]
        encoder.passthroughTypeResolver = nil
        let decoder = Database.Decoder()
        decoder.dateDecodingStrategy = .millisecondsSince1970
        decoder.dataDecodingStrategy = .base64
        decoder.nonConformingFloatDecodingStrategy = .throw
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        decoder.userInfo = [:]
        decoder.passthroughTypeResolver = nil
        try ref.setValue(from: Line(string: "hi"))
        try ref.setValue(from: Line(string: "hi"), encoder: encoder) { error in print(error as Any) }
        // An `async` overload of `setValue(from:)` would break these calls.
        Task {
            try ref.setValue(from: Line(string: "hi"))
            try ref.setValue(from: Line(string: "hi"), encoder: Database.Encoder()) { error in print(error as Any) }
        }
        let any: Any = try encoder.encode(Line(string: "hi"))
        let _: Line = try decoder.decode(Line.self, from: any)
    }

    static func values() {
        let _: [AnyHashable: Any] = ServerValue.timestamp()
        let _: [AnyHashable: Any] = ServerValue.increment(1)
        let _: [Int] = [
            DataEventType.childAdded, .childRemoved, .childChanged, .childMoved, .value,
        ].map(\.rawValue)
        let _: [NSObject] = [DatabaseReference(), DatabaseQuery(), DataSnapshot(), MutableData(), Database()]
        let _: [NSObject] = [TransactionResult(), ServerValue()]
    }

    /// The sample of the reference, unchanged.
    static func sample() {
        let db = Database.database(url: "http://localhost:9000?ns=demo")
        db.isPersistenceEnabled = true
        let ref = db.reference(withPath: "rooms/main")
        let handle = ref.queryOrdered(byChild: "at").queryLimited(toLast: 20)
            .observe(
                .childAdded,
                with: { snap in
                    let fields = snap.value as? [String: Any]
                    print(snap.key, fields?["text"] as? String ?? "")
                }
            ) { error in print(error.localizedDescription) }
        let line = ref.childByAutoId()
        line.setValue(["text": "hi", "at": ServerValue.timestamp()]) { error, ref in print(error as Any, ref.key ?? "")
        }
        line.onDisconnectUpdateChildValues(["online": false])
        ref.child("count").runTransactionBlock(
            { data in
                data.value = (data.value as? Int ?? 0) + 1
                return TransactionResult.success(withValue: data)
            }, andCompletionBlock: { error, committed, snap in print(committed, snap?.value as Any) })
        Task {
            let all = try await ref.getData()
            for case let child as DataSnapshot in all.children { print(child.key) }
            try await ref.updateChildValues(["a/b": 1, "c": NSNull()])
        }
        ref.removeObserver(withHandle: handle)
    }
}
