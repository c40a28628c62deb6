import HearthExport
import HearthModel
import HearthToolSupport

/// `hearth import`
enum ImportCommand {
    static let command = ToolCommand(
        name: "import", summary: "Import documents into a Firestore database.", help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options =
        [
            Option("collection-ids", "A,B", "Only these collection groups. Default: all documents."),
            Option("verify-only", nil, "Read and check all, and write nothing. Needs no server."),
            Option("no-verify", nil, "Do not read all once before the first write."),
            Option(
                "keep-references", nil,
                "References into the exported database stay as they are; else they become references into this one."),
        ] + FirestoreConnection.options

    private static func help() -> String {
        """
        Usage: hearth import PATH [options]

        PATH is a managed export (its folder or its *.overall_export_metadata), of `hearth export`, Google's emulator or
        Firestore itself, or a file of NDJSON, - for standard input.

        Documents of the same names are replaced, others stay. All is read once and checked before the first write,
        except from standard input: a damaged export changes nothing. An import that was interrupted may be repeated.

            hearth import seed --project demo
            gzip -dc copy.ndjson.gz | hearth import -

        \(OptionHelp.string(options))

        Exit codes: 0 all is well, 1 the server refused, 64 wrong usage, 69 the server can't be reached or was lost,
        73 PATH can't be read or is damaged, 130 and 143 ended by a signal.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 1)
        guard let path = parsed.arguments.first, !path.isEmpty else { throw .usage("PATH is missing.") }
        let collectionIDs = try CollectionIDs.list(parsed)
        let verifiesOnly = parsed.flag("verify-only")
        let skips = parsed.flag("no-verify")
        if verifiesOnly, skips { throw .usage("--verify-only and --no-verify exclude each other.") }
        _ = try Interruption()
        let isQuiet = parsed.flag("quiet")
        let source = try fromFiles { () throws(Status) in try DocumentSource(path, collectionIDs: collectionIDs) }
        if verifiesOnly {
            let count = try verify(source, DocumentProgress("checked", isQuiet: isQuiet))
            if !isQuiet { Output.error("\(DocumentProgress.count(count, "document")) can be imported") }
            return
        }
        // An unreachable server is found before a long check.
        let connection = try FirestoreConnection(parsed)
        defer { connection.close() }
        if !skips, !source.isStream { _ = try verify(source, DocumentProgress("checked", isQuiet: isQuiet)) }
        try write(source, to: connection, keepsReferences: parsed.flag("keep-references"), isQuiet: isQuiet)
    }

    /// Errors of files have an exit code of their own.
    private static func fromFiles<Value>(_ body: () throws(Status) -> Value) throws(ToolFailure) -> Value {
        do throws(Status) { return try body() } catch { throw ToolFailure(.data, error.message) }
    }

    /// Reads all and checks it.
    /// - Returns: the number of documents.
    private static func verify(_ source: DocumentSource, _ progress: DocumentProgress) throws(ToolFailure) -> Int {
        if let total = source.documentCount { progress.setTotal(total) }
        defer { progress.clear() }
        return try fromFiles { () throws(Status) in
            let reading = try source.read(target: nil)
            var count = 0
            while try reading.next(validates: true) != nil {
                count += 1
                if count & 255 == 0 { progress.update(documents: count, bytes: reading.consumedBytes) }
            }
            return count
        }
    }

    private static func write(
        _ source: DocumentSource, to connection: FirestoreConnection, keepsReferences: Bool, isQuiet: Bool
    ) throws(ToolFailure) {
        let progress = DocumentProgress("imported", isQuiet: isQuiet)
        if let total = source.documentCount { progress.setTotal(total) }
        let target = keepsReferences ? nil : connection.database
        let reading = try fromFiles { () throws(Status) in try source.read(target: target) }
        let job = DocumentImport(connection, reading, progress)
        do throws(ToolFailure) {
            try job.run()
        } catch {
            progress.clear()
            throw error
        }
        progress.finish("imported \(DocumentProgress.count(job.documentCount, "document"))")
        if reading.legacyValueCount > 0, !isQuiet {
            Output.error(
                "warning: \(DocumentProgress.count(reading.legacyValueCount, "value")) had a meaning that only "
                    + "databases in Datastore mode have; the bare values were imported")
        }
    }
}
