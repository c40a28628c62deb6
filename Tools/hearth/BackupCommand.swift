import HearthBackup
import HearthConcurrency
import HearthHost
import HearthLoadClient
import HearthModel
import HearthNetwork
import HearthSQLite
import HearthToolSupport

import Glibc

/// `hearth backup`
enum BackupCommand {
    static let command = ToolCommand(
        name: "backup", summary: "Back up all databases of a running server.", options: options, help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let variable = "FIRESTORE_EMULATOR_HOST"

    private static let options =
        ServerConnection.options(defaultAddress: variable) + [
            Option("force", nil, "Replace the folder, once the new backup is whole."),
            Option("quiet", nil, "Print nothing but errors."),
        ]

    private static let help = """
        Usage: hearth backup FOLDER [options]
               hearth backup - [options]

        Makes a backup of all databases and namespaces of a running server, and of all else that its data folder has and a
        restore needs: each database as it was at the end of one commit, all within one second, with every commit that was
        acknowledged before. Writers go on. With - an archive (tar) is written to standard output instead.

        \(OptionHelp.string(options))

        The server wants a credential of an administrator of all projects that isn't read-only; one for local development takes
        everybody. FOLDER is made under another name and renamed when all files are durable: what is there is whole. Its last
        file is \(BackupManifest.fileName), with the size and the SHA-256 of each file. `hearth restore` makes a data folder of
        it, or checks it.

        Examples:
            hearth backup /srv/backups/today --credential backup.secret
            hearth backup - | zstd > backup.tar.zst

        Exit codes: 0 done, 1 the server refuses, 64 wrong usage, or FOLDER isn't empty, 69 the server can't be reached or was
        lost, 73 FOLDER can't be written, or is damaged, 78 a file can't be used, 130 and 143 ended by a signal.
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options, argumentsMax: 1)
        guard let wanted = parsed.arguments.first else { throw .usage("Expected the name of a folder, or -.") }
        if wanted == "-" {
            let server = try ServerConnection(parsed, defaultAddress: variable)
            defer { server.close() }
            return try toOutput(server)
        }
        let path = try PartialFolder.target(
            wanted, replacing: parsed.flag("force") ? BackupManifest.fileName : nil, hint: " --force replaces a backup."
        )
        if let folder = try dataFolder(around: path) {
            throw .usage("\(path) is inside the data folder \(folder), of which it would become a part.")
        }
        // Before any thread is started, because it takes the signals.
        let folder = try PartialFolder("\(path).partial-\(getpid())")
        do throws(ToolFailure) {
            let server = try ServerConnection(parsed, defaultAddress: variable)
            defer { server.close() }
            let manifest = try fill(folder, from: server)
            try data { () throws(Status) in try folder.rename(to: path) }
            if !parsed.flag("quiet") { Output.error(summary(manifest)) }
        } catch {
            folder.remove()
            throw error
        }
    }

    /// The data folder that a path is inside of; nil when it is in none.
    static func dataFolder(around path: String) throws(ToolFailure) -> String? {
        var folder = StartMessage.absolute(BackupFolder.parent(of: path))
        while let candidate = folder {
            if try data({ () throws(Status) in try DataFolder.hasDatabases(candidate) }) { return candidate }
            let parent = BackupFolder.parent(of: candidate)
            folder = parent == candidate ? nil : parent
        }
        return nil
    }

    private static func summary(_ manifest: BackupManifest) -> String {
        let bytes = manifest.allFiles.reduce(0) { $0 + $1.bytes }
        return "backed up \(CheckReport.count(manifest.databases.count, "database")), "
            + "\(CheckReport.count(manifest.allFiles.count, "file")), \(DocumentProgress.size(bytes))"
    }

    static func data<Value>(_ body: () throws(Status) -> Value) throws(ToolFailure) -> Value {
        do throws(Status) { return try body() } catch { throw ToolFailure(.data, error.message) }
    }

    private static func fill(
        _ folder: PartialFolder, from server: ServerConnection
    ) throws(ToolFailure) -> BackupManifest {
        let reader = ArchiveReader(folder)
        try archive(of: server) { bytes throws(ToolFailure) in
            try data { () throws(Status) in try reader.take(bytes) }
        }
        try finish(reader)
        return try data { () throws(Status) in
            try folder.withFolder { folder throws(Status) in
                let manifest = try BackupFiles.manifest(of: folder)
                try folder.synchronize()
                return manifest
            }
        }
    }

    /// Passes the archive on, and reads it as it comes: what was cut must not end with 0.
    private static func toOutput(_ server: ServerConnection) throws(ToolFailure) {
        let output = try FileOutput("-")
        let reader = ArchiveReader(NoTarget())
        try archive(of: server) { bytes throws(ToolFailure) in
            try data { () throws(Status) in try reader.take(bytes) }
            try output.write(bytes)
        }
        try finish(reader)
        try output.finish()
    }

    /// Passes the archive to `body` as it arrives.
    /// - Throws: 1 when the server refuses, 69 when the connection breaks, what `body` throws.
    private static func archive(
        of server: ServerConnection, _ body: @escaping ([UInt8]) throws(ToolFailure) -> Void
    ) throws(ToolFailure) {
        guard let refused = try server.download("/hearth/v1/backup", body) else { return }
        var message = String(decoding: refused.body.prefix(4096), as: UTF8.self)
        do throws(Status) {
            let error = try ConfigurationValue(parsing: refused.body, file: "answer").member("error")
            if let string = try error?.member("message")?.string() { message = string }
        } catch {
            // Another server than Hearth has answered, in a form of its own.
        }
        throw ToolFailure(
            .failed,
            "The server refuses (\(refused.status)): \(Printable.string(message))\(server.hint(refused.status))")
    }

    /// - Throws: 69 when the server has sent a part only.
    private static func finish(_ reader: ArchiveReader) throws(ToolFailure) {
        do throws(Status) { try reader.finish() } catch { throw ToolFailure(.unavailable, error.message) }
    }

    private final class NoTarget: BackupTarget {
        func begin(_ path: String, bytes: Int) {}
        func write(_ bytes: [UInt8]) {}
        func end() {}
        func finish() {}
    }

    /// `@unchecked Sendable`: the loop's thread uses it while its creator waits.
    private final class ArchiveReader: @unchecked Sendable {
        private var reader = TarReader()
        private let target: any BackupTarget

        init(_ target: any BackupTarget) { self.target = target }

        func take(_ bytes: [UInt8]) throws(Status) { try reader.take(bytes[...], target) }
        func finish() throws(Status) { try reader.finish() }
    }
}

/// The files of a backup that were copied into a folder.
enum BackupFiles {
    /// - Throws: DATA_LOSS when there is no manifest, a file is missing, damaged or has no entry; FAILED_PRECONDITION for a
    ///   newer format.
    static func manifest(of folder: BackupFolder) throws(Status) -> BackupManifest {
        guard let bytes = folder.manifest else {
            throw Status(.dataLoss, "There is no \(BackupManifest.fileName): it is no backup, or an incomplete one.")
        }
        let manifest = try BackupManifest(parsing: bytes)
        if let difference = manifest.difference(from: folder.files) { throw Status(.dataLoss, difference) }
        return manifest
    }
}
