import HearthToolSupport
import Glibc
import HearthBundle
import HearthModel
import HearthServer
import HearthHost
import HearthFirestoreServer
import HearthEngine
import HearthWire

/// `hearth bundle build`
enum BundleBuildCommand {
    typealias Builder = BundleBuilder<BundleFileSpool>

    static func run(_ parsed: ParsedOptions) throws(ToolFailure) {
        let definition = try definition(parsed)
        var builder: Builder
        do throws(Status) {
            builder = try BundleBuilder(
                id: definition.id, spool: BundleFileSpool(folder: SpillFile.temporaryFolder))
        } catch {
            throw .usage("The bundle needs an id: --name.")
        }
        switch (parsed.string("host"), parsed.string("data")) {
        case (let host?, nil): try RemoteBundle(host, parsed).collect(definition, &builder)
        case (nil, let folder?): try collect(definition, folder, &builder)
        default: throw .usage("Name either a server with --host or a data folder with --data.")
        }
        try write(&builder, to: parsed.string("output") ?? "-")
    }

    // MARK: The definition

    static func definition(_ parsed: ParsedOptions) throws(ToolFailure) -> BundleDefinition {
        do throws(Status) {
            let files = try ProjectFiles(folder: "", project: parsed.string("project"))
            let fallback = DatabaseName(
                project: parsed.string("project") ?? files.defaultProject ?? "demo-hearth",
                database: parsed.string("database") ?? DatabaseName.defaultDatabase)
            let given = parsed.strings("query") + parsed.strings("document")
            guard let path = parsed.string("definition") else {
                if given.isEmpty {
                    throw .invalidArgument("Nothing is named: use --query, --document or --definition.")
                }
                return try BundleDefinition(
                    json: try string(parsed), file: "--query", name: parsed.string("name") ?? "", database: fallback)
            }
            if !given.isEmpty { throw .invalidArgument("--definition excludes --query and --document.") }
            let string = try IdentityConfiguration.bytes(path)
            var definition = try BundleDefinition(
                json: string, file: path, name: parsed.string("name") ?? "bundle", database: fallback)
            if let name = parsed.string("name") { definition.id = name }
            if parsed.string("project") != nil || parsed.string("database") != nil, definition.database != fallback {
                throw .invalidArgument("The definition is of \(definition.database), not of \(fallback).")
            }
            return definition
        } catch {
            throw parsed.string("definition") == nil ? .usage(error.message) : .configuration(error.message)
        }
    }

    /// The definition of the options, as JSON.
    private static func string(_ parsed: ParsedOptions) throws(Status) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"documents\":[")
        for (index, path) in parsed.strings("document").enumerated() {
            if index > 0 { writer.raw(",") }
            writer.string(path)
        }
        writer.raw("],\"queries\":{")
        for (index, query) in parsed.strings("query").enumerated() {
            let parts = query.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2 else {
                throw .invalidArgument("--query expects NAME=QUERY, not \"\(query)\".")
            }
            if index > 0 { writer.raw(",") }
            writer.string(parts[0])
            writer.raw(":")
            if parts[1].hasPrefix("{") {
                writer.raw(parts[1])
            } else {
                let isGroup = parts[1].hasPrefix("*")
                writer.raw(isGroup ? "{\"collectionGroup\":" : "{\"collection\":")
                writer.string(isGroup ? String(parts[1].dropFirst()) : parts[1])
                writer.raw("}")
            }
        }
        writer.raw("}}")
        return writer.bytes
    }

    // MARK: Sources and output

    private static func collect(
        _ definition: BundleDefinition, _ folder: String, _ builder: inout Builder
    ) throws(ToolFailure) {
        let store: any Store
        do throws(Status) {
            let provider = try Stores.firestore(in: folder, isReadOnly: true)
            guard try provider.databases().contains(definition.database) else {
                throw .notFound("There is no database \(definition.database) in \(folder).")
            }
            store = try provider.open(definition.database)
        } catch {
            throw ToolFailure(.data, error.message)
        }
        do throws(Status) {
            try definition.collect(from: store, into: &builder)
        } catch {
            throw ToolFailure(.failed, error.message)
        }
    }

    private static func write(_ builder: inout Builder, to path: String) throws(ToolFailure) {
        let isStandardOutput = path == "-"
        let descriptor = isStandardOutput ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        if descriptor < 0 { throw OutputFile.failure(path) }
        defer { if !isStandardOutput { close(descriptor) } }
        var failure: ToolFailure?
        do throws(Status) {
            let summary = try builder.write { piece throws(Status) in
                var rest = piece[...]
                while !rest.isEmpty {
                    let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
                    if count < 0, errno == EINTR { continue }
                    if count <= 0 {
                        failure = OutputFile.failure(path)
                        throw .unavailable("The output can't be written.")
                    }
                    rest = rest.dropFirst(count)
                }
            }
            if isStandardOutput { return }
            let documents = summary.metadata.totalDocuments
            Output.line(
                "\(path): \(CheckReport.count(documents, "document")), \(CheckReport.count(Int(summary.sizeBytes), "byte"))"
            )
        } catch {
            throw failure ?? ToolFailure(.failed, error.message)
        }
    }
}
