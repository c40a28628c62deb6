import HearthBackup
import HearthModel
import HearthServer
import HearthToolSupport

import Glibc

/// `hearth restore`
enum RestoreCommand {
    static let command = ToolCommand(
        name: "restore", summary: "Make a data folder of a backup, or verify one.", help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option("data", "FOLDER", "The data folder to make. It must be absent or empty."),
        Option("verify-only", nil, "Check the backup, and make nothing."),
        Option("quiet", nil, "Print nothing but errors."),
    ]

    private static let help = """
        Usage: hearth restore BACKUP --data FOLDER [options]
               hearth restore BACKUP --verify-only [options]

        Makes a data folder of a backup: a folder or an archive (tar) of `hearth backup`, or - for an archive on standard
        input. The files are copied, compared with the sizes and the SHA-256 of \(BackupManifest.fileName), and checked
        as `hearth check` does, in a folder beside FOLDER, which is renamed at the end: FOLDER is whole, or isn't there.

        \(OptionHelp.string(options))

        Examples:
            hearth restore /srv/backups/today --data /srv/hearth
            zstd -dc backup.tar.zst | hearth restore - --verify-only

        Exit codes: 0 done, 64 wrong usage, or FOLDER isn't empty, 73 the backup can't be read, is incomplete, damaged or of a
        newer format (the message names the file), or the disk is full, 130 and 143 ended by a signal.
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options, argumentsMax: 1)
        guard let backup = parsed.arguments.first else { throw .usage("Expected a backup: a folder, a file, or -.") }
        let isVerifying = parsed.flag("verify-only")
        let wanted = parsed.string("data")
        if wanted == nil, !isVerifying { throw .usage("Name the data folder to make with --data.") }
        let path = try wanted.map { name throws(ToolFailure) in
            isVerifying
                ? name : try PartialFolder.target(name, hint: " A backup is restored into a new folder.")
        }
        let temporary = path ?? "\(Environment.all["TMPDIR"] ?? "/tmp")/hearth-restore"
        let folder = try PartialFolder("\(temporary).partial-\(getpid())")
        do throws(ToolFailure) {
            try BackupReading.copy(backup, to: folder)
            let (partial, manifest) = try BackupCommand.data { () throws(Status) in
                try folder.withFolder { folder throws(Status) in (folder.path, try BackupFiles.manifest(of: folder)) }
            }
            let documents = try verify(partial, manifest)
            let summary =
                "\(CheckReport.count(manifest.databases.count, "database")), "
                + "\(CheckReport.count(documents, "document"))"
            if let path, !isVerifying {
                try BackupCommand.data { () throws(Status) in
                    try folder.withFolder { folder throws(Status) in
                        // A data folder is no backup, and the next backup has a manifest of its own.
                        try BackupFolder.removeManifest(of: folder.path)
                        try folder.synchronize()
                    }
                    try folder.rename(to: path)
                }
                if !parsed.flag("quiet") { Output.error("restored \(summary)") }
            } else {
                folder.remove()
                if !parsed.flag("quiet") { Output.error("\(backup) is sound: \(summary)") }
            }
        } catch {
            folder.remove()
            throw error
        }
    }

    /// What `hearth check` checks.
    /// - Returns: how many documents there are.
    private static func verify(_ folder: String, _ manifest: BackupManifest) throws(ToolFailure) -> Int {
        let checks = try BackupCommand.data { () throws(Status) in
            let hasDatabases = manifest.databases.contains { !$0.isNamespace }
            return try DatabaseCheck.all(in: folder, hasDatabases: hasDatabases, isRepairing: false)
        }
        let entries = Dictionary(
            manifest.databases.map {
                (Key(isTree: $0.isNamespace, project: $0.isNamespace ? "" : $0.project, name: $0.name), $0)
            }
        ) { first, _ in first }
        for check in checks {
            let key = Key(
                isTree: check.isTree, project: check.isTree ? "" : check.name.project, name: check.name.database)
            let file = entries[key]?.file.path ?? check.name.string
            if !check.isSound {
                throw ToolFailure(.data, "\(file): \(check.report.problems.first ?? check.remark ?? "it is damaged.")")
            }
            if let documents = entries[key]?.documents, documents != check.report.documents {
                throw ToolFailure(
                    .data, "\(file) has \(check.report.documents) documents; the manifest says \(documents).")
            }
        }
        if checks.count != manifest.databases.count {
            throw ToolFailure(
                .data, "The backup has \(checks.count) databases; the manifest says \(manifest.databases.count).")
        }
        return checks.reduce(0) { $0 + $1.report.documents }
    }

    private struct Key: Hashable {
        var isTree: Bool
        var project: String
        var name: String
    }
}

/// Reads a backup, wherever it is.
private enum BackupReading {
    private static let depthMax = 8

    static func copy(_ backup: String, to target: PartialFolder) throws(ToolFailure) {
        var status = stat()
        if backup != "-", stat(backup, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            guard access("\(backup)/\(BackupManifest.fileName)", F_OK) == 0 else {
                throw ToolFailure(
                    .data, "\(backup) has no \(BackupManifest.fileName): it is no backup, or an incomplete one.")
            }
            return try copyFolder(backup, "", depth: 0, to: target)
        }
        let input = try FileInput(backup)
        var reader = TarReader()
        while true {
            let piece = try input.read()
            do throws(Status) {
                if piece.isEmpty { return try reader.finish() }
                try reader.take(piece, target)
            } catch {
                throw ToolFailure(.data, "\(backup == "-" ? "standard input" : backup): \(error.message)")
            }
        }
    }

    private static func copyFolder(
        _ root: String, _ relative: String, depth: Int, to target: PartialFolder
    ) throws(ToolFailure) {
        let folder = relative.isEmpty ? root : "\(root)/\(relative)"
        if depth > depthMax { throw ToolFailure(.data, "\(folder) is too deep: no backup has such a folder.") }
        for name in try PartialFolder.names(folder).sorted() {
            let path = relative.isEmpty ? name : "\(relative)/\(name)"
            var status = stat()
            guard lstat("\(root)/\(path)", &status) == 0 else { throw FileOutput.failure("read", "\(root)/\(path)") }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: try copyFolder(root, path, depth: depth + 1, to: target)
            case S_IFREG: try copyFile(root, path, bytes: Int(status.st_size), to: target)
            default: throw ToolFailure(.data, "\(root)/\(path) is no file: no backup has it.")
            }
        }
    }

    private static func copyFile(
        _ root: String, _ path: String, bytes: Int, to target: PartialFolder
    ) throws(ToolFailure) {
        let input = try FileInput("\(root)/\(path)")
        try BackupCommand.data { () throws(Status) in try target.begin(path, bytes: bytes) }
        while true {
            let piece = try input.read()
            if piece.isEmpty { break }
            try BackupCommand.data { () throws(Status) in try target.write(Array(piece)) }
        }
        try BackupCommand.data { () throws(Status) in try target.end() }
    }
}
