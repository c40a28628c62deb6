// sample: import-networking
import FoundationNetworking
import HearthFirestore

// end

enum Bundles {
    static func load(_ db: Firestore, _ url: URL) async throws -> LoadBundleTaskProgress {
        // sample: load-bundle
        let (bundle, _) = try await URLSession.shared.data(from: url)
        let progress = try await db.loadBundle(bundle)
        print("\(progress.documentsLoaded) documents")
        // end
        return progress
    }

    static func named(_ db: Firestore) async throws -> QuerySnapshot? {
        // sample: named-query
        guard let latest = await db.getQuery(named: "latest") else { return nil }
        let notes = try await latest.getDocuments(source: .cache)
        // end
        return notes
    }

    static func build(_ db: Firestore, _ file: URL) async throws {
        // sample: build-bundle
        let notes = db.collection("notes").order(by: "title").limit(to: 20)
        let bundle = try db.bundle("first-page")
            .add(try await db.document("settings/site").getDocument(source: .server))
            .add("latest", try await notes.getDocuments(source: .server))
            .build()
        try bundle.write(to: file)
        // end
    }

    static func file(
        _ db: Firestore, _ path: String, _ show: @escaping @Sendable (String) -> Void
    ) {
        // sample: load-file
        guard let stream = InputStream(fileAtPath: path) else { return show("There is no \(path).") }
        let task = db.loadBundle(stream) { _, error in
            show(error.map { "not loaded: \($0.localizedDescription)" } ?? "loaded")
        }
        task.addObserver { progress in
            show("\(progress.bytesLoaded) of \(progress.totalBytes) bytes")
        }
        // end
    }
}
