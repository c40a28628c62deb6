import Glibc
import HearthBackup
import HearthConcurrency
import HearthExport
import HearthFirestoreServer
import HearthHost
import HearthModel
import HearthServer
import HearthToolSupport
import HearthTree
import HearthTreeStorage

/// What `hearth serve` imports before the first request, and exports after the last.
struct ServedData {
    private let importPath: String?
    private let exportPath: String?
    private let project: String
    private let log: Log
    private let interruption: Interruption
    private let content: ImportContent?

    /// Reads and checks all that is imported, and where the export goes.
    /// - Throws: 73 for an export that can't be read or is damaged, 64 for a folder that can't be exported to.
    init(_ settings: ServeSettings, _ log: Log, _ interruption: Interruption) throws(ToolFailure) {
        project = settings.project
        exportPath = settings.exportPath
        self.log = log
        self.interruption = interruption
        if let path = exportPath { try Self.check(path, dataFolder: settings.dataFolder) }
        if let path = settings.importPath, path == exportPath, !Folders.exists(path) {
            log.info("there is nothing to import yet", ("folder", .string(path)))
            importPath = nil
        } else {
            importPath = settings.importPath
        }
        content = try importPath.map { path throws(ToolFailure) in
            let content = try ImportContent(path)
            if content.documents != nil, content.documents?.folder == nil {
                throw .usage("\(path) is no folder of an export; `hearth import` reads other files.")
            }
            for warning in content.warnings { log.warning(warning) }
            _ = try content.verify(DocumentProgress("checked", isQuiet: true))
            return content
        }
    }

    /// - Parameter dataFolder: nil for a server that keeps its data in memory.
    private static func check(_ path: String, dataFolder: String?) throws(ToolFailure) {
        try ExportCommand.checkFolder(path, true, marker: SuiteFolder.metadataName)
        try FolderTarget.check(path, named: path)
        // It is replaced by another one.
        if BackupSchedule.isInside(".", path) { throw .usage("The server runs in \(path): export to another folder.") }
        guard let dataFolder else { return }
        if BackupSchedule.isInside(path, dataFolder) || BackupSchedule.isInside(dataFolder, path) {
            throw .usage("One of the folders \(path) and \(dataFolder) is inside the other: export to another folder.")
        }
    }

    private var database: DatabaseName { DatabaseName(project: project) }

    // MARK: Import

    /// Imports. Triggers get no events.
    func load(_ server: Server) throws(ToolFailure) {
        guard let content, let importPath else { return }
        let control = TransferControl()
        interruption.setCleanUp {
            Output.error("hearth: ended by a signal: at least \(control.progress.documentCount) documents are in.")
        }
        defer { interruption.setCleanUp(nil) }
        for namespace in content.namespaces {
            try content.write(namespace, to: ServedNamespace(server: server, name: namespace.name))
        }
        var documentCount = 0
        if let folder = content.documents?.folder {
            let outcome = try FileErrors.of { () throws(Status) in
                var options = ImportJob.Options()
                options.makesEvents = false
                // It was verified.
                options.verifies = false
                return try ImportJob(folder, to: try server.registry.database(database), options).run(control)
            }
            documentCount = outcome.documentCount
            if outcome.legacyValueCount > 0 { log.warning(ImportCommand.legacyValues(outcome.legacyValueCount)) }
        }
        log.info(
            "imported", ("from", .string(importPath)), ("documents", .integer(documentCount)),
            ("databases", .integer(content.namespaces.count)))
    }

    // MARK: Export

    /// Exports, when that is wanted.
    func save(_ server: Server) throws(ToolFailure) {
        guard let exportPath else { return }
        do throws(ToolFailure) {
            try save(server, to: exportPath)
        } catch {
            throw ToolFailure(.data, "The export to \(exportPath) failed, and changed nothing there: \(error.message)")
        }
    }

    private func save(_ server: Server, to path: String) throws(ToolFailure) {
        // Others may have put files there meanwhile.
        try ExportCommand.checkFolder(path, true, marker: SuiteFolder.metadataName)
        let (documents, namespaces) = try FileErrors.of { () throws(Status) in
            let output = try SuiteOutput(path, replaces: true)
            interruption.setCleanUp { output.abandon() }
            defer { interruption.setCleanUp(nil) }
            do throws(Status) {
                let options = ExportJob.Options(path: output.documentsPath, name: SuiteOutput.documentsName)
                let job = server.transfers.exportJob(try server.registry.database(database), options)
                let outcome = try job.run(TransferControl())
                let imported = Set(content?.namespaces.map(\.name) ?? [])
                var count = 0
                for name in imported.union(try server.realtime.names()).sorted() {
                    let isEmpty = try ServedNamespace(server: server, name: name).export(
                        to: try output.file(ofNamespace: name))
                    // What was imported stays a part of the export.
                    if isEmpty, !imported.contains(name) { output.removeFile(ofNamespace: name) } else { count += 1 }
                }
                try interruption.whole { () throws(Status) in try output.finish() }
                return (outcome.documentCount, count)
            } catch {
                interruption.whole { output.abandon() }
                throw error
            }
        }
        log.info(
            "exported", ("to", .string(path)), ("documents", .integer(documents)), ("databases", .integer(namespaces)))
    }
}

/// A namespace of the server of this process.
private struct ServedNamespace: DatabaseWriting {
    let server: Server
    let name: String

    func write(_ method: String, _ path: TreePath, _ body: [UInt8]) throws(ToolFailure) {
        let changes = try DatabaseVerification.changes(method, path, body)
        if changes.isEmpty { return }
        var write = TreeWrite(changes: changes, nowMilliseconds: Log.wallClock().microseconds / 1000)
        write.isRecorded = false
        do throws(Status) {
            let outcome = Awaited<TreeOutcome>()
            try server.realtime.namespace(name).database.submit(write) { outcome.set(.success($0)) }
            if case .failed(let status) = try outcome.wait() { throw status }
        } catch {
            throw ToolFailure(.data, error.message)
        }
    }

    /// Writes all data to a file.
    /// - Returns: whether there is none.
    func export(to path: String) throws(Status) -> Bool {
        let sink = try FileSink(path)
        let view = try server.realtime.namespace(name).database.view()
        defer { view.close() }
        try view.writeJSON(at: .root, form: .export, sizeBytesMax: .max) { (piece: inout [UInt8]) throws(Status) in
            try sink.write(piece)
            piece.removeAll(keepingCapacity: true)
        }
        let isEmpty = try !view.exists(at: .root)
        try sink.write([UInt8(ascii: "\n")])
        try sink.finish()
        return isEmpty
    }
}
