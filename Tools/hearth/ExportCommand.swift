import HearthExport
import HearthModel
import HearthToolSupport
import HearthWire

/// `hearth export`
enum ExportCommand {
    static let command = ToolCommand(
        name: "export", summary: "Export documents, or all of a project with its Realtime Databases.",
        options: options, help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options =
        [
            Option("collection-ids", "A,B", "Only these collection groups. Default: all documents."),
            Option("read-time", "TIME", "The moment that is exported (RFC 3339). Default: now."),
            Option(
                "format", "google|suite|ndjson",
                "google: a folder as Firestore's managed export. suite: a folder as of `firebase emulators:export`. "
                    + "ndjson: a file. Default google."),
            Option("name", "NAME", "google: the name in the export. Default: the last component of FOLDER."),
            Option("force", nil, "Replace what is there, when the export is whole."),
        ] + FirestoreConnection.options

    private static func help() -> String {
        """
        Usage: hearth export FOLDER [options]
               hearth export FOLDER --format suite [options]
               hearth export FILE --format ndjson [options]

        Reads all documents at one moment, so that the export is consistent while others write, and writes them to a
        folder that `hearth import`, Google's emulator and `gcloud firestore import` read. With --format ndjson: a JSON
        document a line, to a file or, as -, to standard output. With --format suite: the default database, and each database of
        the Realtime Database on the server, for `firebase emulators:start --import` and `hearth serve --import`.

            hearth export seed --project demo
            hearth export copy --address firestore.googleapis.com:443 --tls --project my-project \\
                --token "$(gcloud auth print-access-token)"

        \(OptionHelp.string(options))

        FOLDER appears when all is durable: what an interrupted export leaves is named FOLDER.partial-… .

        Exit codes: 0 all is well, 1 the server refused, 64 wrong usage, 69 the server can't be reached or was lost,
        73 the output can't be written, 78 the credential's file can't be used, 130 and 143 ended by a signal.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 1)
        guard let path = parsed.arguments.first, !path.isEmpty else { throw .usage("FOLDER is missing.") }
        let collectionIDs = try CollectionIDs.list(parsed)
        let readTime = try readTime(parsed.string("read-time"))
        let format = try format(parsed)
        if format == .suite { return try runSuite(path, parsed) }
        let isLines = format == .lines
        let name = try name(parsed, path)
        let target = isLines ? path : try FolderTarget.path(path)
        try checkTarget(target, isLines: isLines, parsed.flag("force"))
        let interruption = try Interruption()
        let connection = try FirestoreConnection(parsed)
        defer { connection.close() }
        let output = try output(
            target, isLines: isLines, name: name, connection.database, collectionIDs, replaces: parsed.flag("force"))
        interruption.setCleanUp { output.abandon() }
        let progress = DocumentProgress("exported", isQuiet: parsed.flag("quiet"))
        let export = DocumentExport(connection, to: output, at: readTime, interruption, progress)
        do throws(ToolFailure) {
            try export.run(collectionIDs: collectionIDs)
            try finish(output, interruption)
        } catch {
            progress.clear()
            interruption.whole { output.abandon() }
            throw error
        }
        let files = output.fileCount > 0 ? ", " + DocumentProgress.count(output.fileCount, "file") : ""
        // Whoever expected some sees where there are none.
        let source = export.documentCount == 0 ? " of \(connection.database.string)" : ""
        progress.finish(
            "exported \(DocumentProgress.count(export.documentCount, "document"))\(source)\(files), "
                + DocumentProgress.size(output.sizeBytes))
    }

    private static func runSuite(_ path: String, _ parsed: ParsedOptions) throws(ToolFailure) {
        for option in ["collection-ids", "read-time", "name"] where parsed.string(option) != nil {
            throw .usage("--\(option) is not for --format suite, which has all documents and databases as they are.")
        }
        if try FirestoreConnection.database(parsed).database != DatabaseName.defaultDatabase {
            throw .usage("--format suite has the default database: --database is not for it.")
        }
        let replaces = parsed.flag("force")
        let path = try FolderTarget.path(path)
        try checkFolder(path, replaces, marker: SuiteFolder.metadataName)
        let interruption = try Interruption()
        let connection = try FirestoreConnection(parsed)
        defer { connection.close() }
        let progress = DocumentProgress("exported", isQuiet: parsed.flag("quiet"))
        let export = SuiteExport(connection, interruption, progress)
        do throws(ToolFailure) {
            try export.run(to: path, replaces: replaces)
        } catch {
            progress.clear()
            throw error
        }
        progress.finish("exported \(export.summary)")
    }

    private static func finish(_ output: any DocumentOutput, _ interruption: Interruption) throws(ToolFailure) {
        do throws(Status) {
            try interruption.whole(unless: output.isStream) { () throws(Status) in try output.finish() }
        } catch {
            throw ToolFailure(.data, error.message)
        }
    }

    private static func output(
        _ path: String, isLines: Bool, name: String, _ database: DatabaseName, _ collectionIDs: [String]?,
        replaces: Bool
    ) throws(ToolFailure) -> any DocumentOutput {
        do throws(Status) {
            if isLines { return try LineOutput(path) }
            return try FolderOutput(
                path, name: name, database: database, collectionIDs: collectionIDs, replaces: replaces)
        } catch {
            throw ToolFailure(.data, error.message)
        }
    }

    // MARK: Options

    private enum Format {
        case folder
        case lines
        case suite
    }

    private static func format(_ parsed: ParsedOptions) throws(ToolFailure) -> Format {
        switch parsed.string("format") {
        case nil, "google": return .folder
        case "suite": return .suite
        case "ndjson":
            if parsed.string("name") != nil { throw .usage("--name is for --format google.") }
            return .lines
        case let format?: throw .usage("--format is google, suite or ndjson, not \"\(format)\".")
        }
    }

    private static func name(_ parsed: ParsedOptions, _ path: String) throws(ToolFailure) -> String {
        let path = Folders.withoutEnd(path)
        let name = parsed.string("name") ?? Folders.name(path)
        if name.isEmpty || name.utf8.contains(UInt8(ascii: "/")) || name == "." || name == ".." {
            throw .usage("The export needs a name without slashes: pass --name.")
        }
        return name
    }

    private static func readTime(_ string: String?) throws(ToolFailure) -> TimestampMessage? {
        guard let string else { return nil }
        guard let time = RFC3339.parse(string) else {
            throw .usage("--read-time expects a time such as 2026-01-31T12:30:00Z, not \"\(string)\".")
        }
        return TimestampMessage(seconds: time.seconds, nanos: time.nanoseconds)
    }

    private static func checkTarget(_ path: String, isLines: Bool, _ force: Bool) throws(ToolFailure) {
        if isLines {
            if path == "-" { return }
            if Folders.isFolder(path) { throw .usage("\(path) is a folder; --format ndjson writes a file.") }
            // A device or a pipe would be replaced, and not written to.
            if Folders.isSpecial(path) { throw .usage("\(path) is no file: write to - and redirect that.") }
            if !force, Folders.exists(path) { throw .usage("\(path) is there already: pass --force to replace it.") }
            return
        }
        try checkFolder(path, force, marker: ExportFolderWriter.overallSuffix)
    }

    /// - Parameter marker: the end of the name of a file that each export has.
    static func checkFolder(_ path: String, _ force: Bool, marker: String) throws(ToolFailure) {
        if path == "-" { throw .usage("Only --format ndjson writes to standard output.") }
        guard Folders.exists(path) else { return }
        guard Folders.isFolder(path) else { throw .usage("\(path) is a file.") }
        do throws(Status) {
            let names = try Folders.names(path)
            if names.isEmpty { return }
            if !force { throw .invalidArgument("\(path) is not empty: pass --force to replace an export.") }
            // It may hold anything.
            if !names.contains(where: { $0.hasSuffix(marker) }) {
                throw .invalidArgument(
                    "\(path) has no file \(marker), so that it is no export that may be replaced.")
            }
        } catch {
            throw .usage(error.message)
        }
    }
}

/// The option `--collection-ids`.
enum CollectionIDs {
    /// - Returns: nil for all.
    static func list(_ parsed: ParsedOptions) throws(ToolFailure) -> [String]? {
        guard let string = parsed.string("collection-ids") else { return nil }
        var ids: [String] = []
        for id in string.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
            do throws(Status) {
                try ResourceName.validate(collectionID: id)
            } catch {
                throw .usage("--collection-ids: \(error.message)")
            }
            // By bytes: two spellings of an accent are two ids.
            if ids.contains(where: { UTF8Order.equal($0, id) }) {
                throw .usage("--collection-ids names \"\(id)\" twice.")
            }
            ids.append(id)
        }
        return ids
    }
}
