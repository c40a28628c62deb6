import HearthModel
import HearthToolSupport
import HearthTree

/// `hearth import`
enum ImportCommand {
    static let command = ToolCommand(
        name: "import", summary: "Import documents, and databases of the Realtime Database.", options: options,
        help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options =
        [
            Option("collection-ids", "A,B", "Only these collection groups. Default: all documents."),
            Option("verify-only", nil, "Read and check all, and write nothing. Needs no server."),
            Option("no-verify", nil, "Do not read all once before the first write."),
            Option(
                "keep-references", nil,
                "References into the exported database stay as they are; else they become references into this one."),
            Option(
                "no-triggers", nil,
                "Triggers get no events of the import. For Hearth's servers only, and for administrators."),
        ] + FirestoreConnection.options

    private static func help() -> String {
        """
        Usage: hearth import PATH [options]

        PATH is a managed export (its folder or its *.overall_export_metadata), of `hearth export`, Google's emulator or
        Firestore itself, a folder of `hearth export --format suite` or `firebase emulators:export`, or a file of NDJSON,
        - for standard input.

        Documents of the same names are replaced, others stay; databases of the Realtime Database are replaced whole. All
        is read once and checked before the first write, except from standard input: a damaged export changes nothing. An
        import that was interrupted may be repeated.

            hearth import seed --project demo
            gzip -dc copy.ndjson.gz | hearth import -

        \(OptionHelp.string(options))

        Exit codes: 0 all is well, 1 the server refused, 64 wrong usage, 69 the server can't be reached or was lost,
        73 PATH can't be read or is damaged, 78 the credential's file can't be used, 130 and 143 ended by a signal.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 1)
        guard let path = parsed.arguments.first, !path.isEmpty else { throw .usage("PATH is missing.") }
        let collectionIDs = try CollectionIDs.list(parsed)
        let verifiesOnly = parsed.flag("verify-only")
        let skips = parsed.flag("no-verify")
        if verifiesOnly, skips { throw .usage("--verify-only and --no-verify exclude each other.") }
        let interruption = try Interruption()
        let isQuiet = parsed.flag("quiet")
        let content = try ImportContent(path, collectionIDs: collectionIDs)
        if !isQuiet { for warning in content.warnings { Output.error("warning: \(warning)") } }
        if verifiesOnly {
            let count = try content.verify(DocumentProgress("checked", isQuiet: isQuiet))
            let summary = ImportContent.summary(documents: count, namespaces: content.namespaces.count)
            if !isQuiet { Output.error("\(summary) can be imported") }
            return
        }
        // What a server refuses is found before a long check.
        let disablesTriggers = parsed.flag("no-triggers")
        let connection = try FirestoreConnection(parsed, disablesTriggers: disablesTriggers)
        defer { connection.close() }
        if disablesTriggers { try connection.checkThatTriggersAreDisabled() }
        for namespace in content.namespaces {
            let database = DatabaseConnection(connection.server, namespace: namespace.name)
            _ = try database.request("GET", TreePath.root.child(.priority), [])
        }
        if !skips, !content.isStream { _ = try content.verify(DocumentProgress("checked", isQuiet: isQuiet)) }
        try write(content, to: connection, keepsReferences: parsed.flag("keep-references"), isQuiet, interruption)
    }

    private static func write(
        _ content: ImportContent, to connection: FirestoreConnection, keepsReferences: Bool, _ isQuiet: Bool,
        _ interruption: Interruption
    ) throws(ToolFailure) {
        let progress = DocumentProgress("imported", isQuiet: isQuiet)
        var documentCount = 0
        var legacyValueCount = 0
        if let source = content.documents {
            if let total = source.documentCount { progress.setTotal(total) }
            let target = keepsReferences ? nil : connection.database
            let reading = try FileErrors.of { () throws(Status) in try source.read(target: target) }
            let job = DocumentImport(connection, reading, progress)
            interruption.setCleanUp {
                progress.clear()
                // Open commits may get in, too.
                Output.error("hearth: ended by a signal: at least \(job.soFar)")
            }
            do throws(ToolFailure) {
                try job.run()
            } catch {
                progress.clear()
                throw error
            }
            documentCount = job.documentCount
            legacyValueCount = reading.legacyValueCount
        }
        for namespace in content.namespaces {
            let database = DatabaseConnection(connection.server, namespace: namespace.name)
            try content.write(namespace, to: database)
        }
        interruption.setCleanUp(nil)
        let summary = ImportContent.summary(documents: documentCount, namespaces: content.namespaces.count)
        progress.finish("imported \(summary)")
        if legacyValueCount > 0, !isQuiet { Output.error("warning: \(legacyValues(legacyValueCount))") }
    }

    static func legacyValues(_ count: Int) -> String {
        "\(DocumentProgress.count(count, "value")) had a meaning that only databases in Datastore mode have; the bare "
            + "values were imported"
    }
}
