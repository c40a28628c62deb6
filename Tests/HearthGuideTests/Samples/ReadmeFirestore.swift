// sample: readme-firestore
import HearthFirestore

// end

enum ReadmeFirestore {
    static func run() async throws {
        // more: readme-firestore
        FirebaseApp.configure(options: FirebaseOptions(projectID: "demo"))
        let db = Firestore.firestore()
        db.useEmulator(withHost: "127.0.0.1", port: 8080)
        try await db.document("cities/LA").setData(["name": "Los Angeles", "population": 3_900_000])
        print(try await db.collection("cities").whereField("population", isGreaterThan: 1_000_000).getDocuments().count)
        // end
    }
}
