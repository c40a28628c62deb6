import HearthExport
import HearthModel
import HearthToolSupport
import HearthTree

/// Exports the default database and all databases of the Realtime Database of a server.
final class SuiteExport {
    private let connection: FirestoreConnection
    private let interruption: Interruption
    private let progress: DocumentProgress
    private var documentCount = 0
    private var namespaceCount = 0
    private var sizeBytes = 0

    init(_ connection: FirestoreConnection, _ interruption: Interruption, _ progress: DocumentProgress) {
        self.connection = connection
        self.interruption = interruption
        self.progress = progress
    }

    /// `60 documents, 1 database, 21.6 kB`
    var summary: String {
        "\(ImportContent.summary(documents: documentCount, namespaces: namespaceCount)), "
            + DocumentProgress.size(sizeBytes)
    }

    func run(to path: String, replaces: Bool) throws(ToolFailure) {
        // A server without a Realtime Database is found before anything is written.
        let names = try DatabaseConnection(connection.server, namespace: nil).names()
        let output = try FileErrors.of { () throws(Status) in try SuiteOutput(path, replaces: replaces) }
        interruption.setCleanUp { output.abandon() }
        do throws(ToolFailure) {
            try documents(to: output)
            for name in names { try namespace(name, to: output) }
            try FileErrors.of { () throws(Status) in
                try interruption.whole { () throws(Status) in try output.finish() }
            }
        } catch {
            interruption.whole { output.abandon() }
            throw error
        }
    }

    private func documents(to output: SuiteOutput) throws(ToolFailure) {
        let folder = try FileErrors.of { () throws(Status) in try output.documents(connection.database) }
        let export = DocumentExport(connection, to: folder, at: nil, interruption, progress)
        try export.run(collectionIDs: nil)
        try FileErrors.of { () throws(Status) in
            try interruption.whole { () throws(Status) in try folder.finish() }
        }
        documentCount = export.documentCount
        sizeBytes += folder.sizeBytes
    }

    private func namespace(_ name: String, to output: SuiteOutput) throws(ToolFailure) {
        let file = try interruption.whole { () throws(ToolFailure) in
            try FileOutput(try FileErrors.of { () throws(Status) in try output.file(ofNamespace: name) })
        }
        let database = DatabaseConnection(connection.server, namespace: name)
        let (bytes, isEmpty) = try DatabaseExport.run(.root, to: file, database, isQuiet: true)
        if isEmpty { return output.removeFile(ofNamespace: name) }
        namespaceCount += 1
        sizeBytes += bytes
    }
}
