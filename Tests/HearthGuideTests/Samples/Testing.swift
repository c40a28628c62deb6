import HearthFirestore

// sample: test-database
func testDatabase(port: Int) -> Firestore {
    let name = "demo-\(UUID().uuidString.lowercased())"
    FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: name))
    let db = Firestore.firestore(app: FirebaseApp.app(name: name)!)
    db.useEmulator(withHost: "127.0.0.1", port: port)
    let settings = db.settings
    settings.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
    settings.dispatchQueue = DispatchQueue(label: name)
    db.settings = settings
    return db
}
// end
