import HearthExport
import HearthModel
import HearthToolSupport

/// What an import writes: documents, and namespaces of the Realtime Database.
struct ImportContent {
    /// nil for a suite without a part of Firestore.
    let documents: DocumentSource?
    let namespaces: [SuiteFolder.Namespace]
    /// Whether its documents must be read only once.
    var isStream: Bool { documents?.isStream ?? false }
    let warnings: [String]

    /// - Parameter path: of a suite, a managed export, NDJSON, or `-`.
    /// - Throws: 73 with what is missing or damaged, 64 for collection groups of a suite.
    init(_ path: String, collectionIDs: [String]? = nil) throws(ToolFailure) {
        guard path != "-", SuiteFolder.isThere(path) else {
            documents = try FileErrors.of { () throws(Status) in
                try DocumentSource(path, collectionIDs: collectionIDs)
            }
            namespaces = []
            warnings = []
            return
        }
        let suite = try FileErrors.of { () throws(Status) in try SuiteFolder(path) }
        if collectionIDs != nil {
            throw .usage("--collection-ids is for documents alone: name the part of Firestore in \(path).")
        }
        documents = try suite.documents.map { file throws(ToolFailure) in
            try FileErrors.of { () throws(Status) in try DocumentSource(file, collectionIDs: nil) }
        }
        namespaces = suite.namespaces
        warnings =
            suite.warnings
            + suite.otherParts.map { "\(path) has a part \"\($0)\", which Hearth doesn't keep: it is left out" }
    }

    /// Reads all and checks it as the databases would.
    /// - Returns: the number of documents.
    func verify(_ progress: DocumentProgress) throws(ToolFailure) -> Int {
        defer { progress.clear() }
        for namespace in namespaces {
            do throws(ToolFailure) {
                try write(namespace, to: DatabaseVerification())
            } catch {
                throw ToolFailure(.data, error.message)
            }
        }
        guard let documents else { return 0 }
        if let total = documents.documentCount { progress.setTotal(total) }
        return try FileErrors.of { () throws(Status) in
            let reading = try documents.read(target: nil)
            var count = 0
            while try reading.next(validates: true) != nil {
                count += 1
                if count & 255 == 0 { progress.update(documents: count, bytes: reading.consumedBytes) }
            }
            return count
        }
    }

    /// Replaces the data of a namespace.
    func write(_ namespace: SuiteFolder.Namespace, to target: any DatabaseWriting) throws(ToolFailure) {
        do throws(ToolFailure) {
            try DatabaseImport.run(.root, try FileInput(namespace.path), to: target, isQuiet: true)
        } catch {
            throw ToolFailure(error.code, "\(namespace.path): \(error.message)")
        }
    }

    /// `60 documents`, `60 documents, 1 database`
    static func summary(documents: Int, namespaces: Int) -> String {
        let databases = namespaces == 0 ? "" : ", " + DocumentProgress.count(namespaces, "database")
        return DocumentProgress.count(documents, "document") + databases
    }
}

/// Errors of files have an exit code of their own.
enum FileErrors {
    static func of<Value>(_ body: () throws(Status) -> Value) throws(ToolFailure) -> Value {
        do throws(Status) { return try body() } catch { throw ToolFailure(.data, error.message) }
    }
}
