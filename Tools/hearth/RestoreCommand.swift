import HearthBackup
import HearthModel
import HearthSQLite
import HearthServer
import HearthToolSupport

import Glibc

/// `hearth restore`
enum RestoreCommand {
    static let command = ToolCommand(
        name: "restore", summary: "Make a data folder of a backup, or verify one.", options: options, help: { help },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option("data", "FOLDER", "The data folder to make. It must be absent or empty."),
        Option("at", "TIME", "Take Firestore's databases back to their states at a time, by their history (RFC 3339)."),
        Option("verify-only", nil, "Check the backup, and make nothing."),
        Option("quiet", nil, "Print nothing but errors."),
    ]

    private static let help = """
        Usage: hearth restore BACKUP --data FOLDER [options]
               hearth restore DATA --at TIME --data FOLDER [options]
               hearth restore BACKUP --verify-only [options]

        Makes a data folder of a backup: a folder or an archive (tar) of `hearth backup`, or - for an archive on standard
        input. The files are copied, compared with the sizes and the SHA-256 of \(BackupManifest.fileName), and checked
        as `hearth check` does, in a folder beside FOLDER, which is renamed at the end: FOLDER is whole, or isn't there.

        With --at the changes after TIME are undone in that folder, as far as the databases keep their history: an hour, or
        seven days with point-in-time recovery. DATA, the data folder of a server that is stopped, is copied and stays as it
        is. Databases without commits at TIME end up empty. The Realtime Database keeps no history: its namespaces stay as
        they are. Index definitions, settings, rules and triggers, too. Triggers' events of what was undone are deleted.

        \(OptionHelp.string(options))

        Examples:
            hearth restore /srv/backups/today --data /srv/hearth
            hearth restore /srv/hearth --at 2026-01-31T12:30:00Z --data /srv/hearth-before
            zstd -dc backup.tar.zst | hearth restore - --verify-only

        Exit codes: 0 done, 64 wrong usage, FOLDER isn't empty, or there is no state of TIME, 73 the backup can't be read, is incomplete, damaged or of a
        newer format (the message names the file), or the disk is full, 130 and 143 ended by a signal.
        """

    private static func run(_ arguments: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(arguments, options: options, argumentsMax: 1)
        guard let backup = parsed.arguments.first else { throw .usage("Expected a backup: a folder, a file, or -.") }
        let isVerifying = parsed.flag("verify-only")
        let time = try parsed.string("at").map { string throws(ToolFailure) in try RestoreTime(string) }
        let wanted = parsed.string("data")
        if wanted == nil, !isVerifying { throw .usage("Name the data folder to make with --data.") }
        let path = try wanted.map { name throws(ToolFailure) in
            isVerifying
                ? name : try PartialFolder.target(name, hint: " A backup is restored into a new folder.")
        }
        let temporary = path ?? "\(Environment.all["TMPDIR"] ?? "/tmp")/hearth-restore"
        let folder = try PartialFolder("\(temporary).partial-\(getpid())")
        do throws(ToolFailure) {
            let restored = try fill(folder, from: backup, at: time, target: path)
            if !parsed.flag("quiet") { restored.warnings.forEach { Output.error($0) } }
            let summary = restored.summary
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

    /// What was restored, and is sound.
    private struct Restored {
        var databases: Int
        var namespaces: Int
        var documents: Int
        var rollback: (to: RestoreTime, report: FolderRollback.Report)?

        var summary: String {
            "\(CheckReport.count(databases, "database")), \(CheckReport.count(documents, "document"))"
                + (rollback.map { rollback in
                    ", as of \(rollback.to): \(CheckReport.count(rollback.report.changes, "change")) and "
                        + "\(CheckReport.count(rollback.report.events, "event")) undone"
                } ?? "")
        }

        var warnings: [String] {
            guard let rollback else { return [] }
            var warnings = rollback.report.later.map {
                "warning: the database \($0.string) has its first commit after \(rollback.to), and is empty"
            }
            if namespaces > 0 {
                warnings.append(
                    "warning: the Realtime Database keeps no history: \(CheckReport.count(namespaces, "namespace")) "
                        + (namespaces == 1 ? "stays" : "stay") + " as of the backup or the data folder, not of --at")
            }
            return warnings
        }
    }

    private static func fill(
        _ folder: PartialFolder, from backup: String, at time: RestoreTime?, target: String?
    ) throws(ToolFailure) -> Restored {
        let isBackup = try BackupReading.copy(backup, to: folder, isRollingBack: time != nil, target: target)
        let (partial, manifest) = try BackupCommand.data { () throws(Status) in
            try folder.withFolder { folder throws(Status) in
                (folder.path, try isBackup ? BackupFiles.manifest(of: folder) : nil)
            }
        }
        let hasDatabases = manifest?.databases.contains { !$0.isNamespace } ?? true
        var report: FolderRollback.Report?
        if let time {
            if let manifest { try time.check(manifest) }
            report = try hasDatabases ? FolderRollback.run(in: partial, to: time) : FolderRollback.Report()
        }
        let checks = try BackupCommand.data { () throws(Status) in
            try DatabaseCheck.all(in: partial, hasDatabases: hasDatabases, isRepairing: false)
        }
        try verify(checks, manifest, comparesDocuments: time == nil)
        return Restored(
            databases: checks.count, namespaces: checks.count { $0.isTree },
            documents: checks.reduce(0) { $0 + $1.report.documents },
            rollback: time.flatMap { time in report.map { (to: time, report: $0) } })
    }

    /// - Parameters:
    ///   - checks: what `hearth check` finds.
    ///   - manifest: nil for a data folder.
    ///   - comparesDocuments: whether there are as many as in the backup.
    private static func verify(
        _ checks: [DatabaseCheck], _ manifest: BackupManifest?, comparesDocuments: Bool
    ) throws(ToolFailure) {
        let entries = Dictionary(
            (manifest?.databases ?? []).map {
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
            if comparesDocuments, let documents = entries[key]?.documents, documents != check.report.documents {
                throw ToolFailure(
                    .data, "\(file) has \(check.report.documents) documents; the manifest says \(documents).")
            }
        }
        if let manifest, checks.count != manifest.databases.count {
            throw ToolFailure(
                .data, "The backup has \(checks.count) databases; the manifest says \(manifest.databases.count).")
        }
    }

    private struct Key: Hashable {
        var isTree: Bool
        var project: String
        var name: String
    }
}

/// Reads a backup, wherever it is, or a data folder.
private enum BackupReading {
    private static let depthMax = 8

    /// - Parameters:
    ///   - isRollingBack: whether it may be a data folder.
    ///   - path: of the data folder to make.
    /// - Returns: whether it is a backup.
    static func copy(
        _ backup: String, to target: PartialFolder, isRollingBack: Bool, target path: String?
    ) throws(ToolFailure) -> Bool {
        var status = stat()
        if backup != "-", stat(backup, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            if access("\(backup)/\(BackupManifest.fileName)", F_OK) == 0 {
                try copyFolder(backup, "", depth: 0, to: target)
                return true
            }
            guard try BackupCommand.data({ () throws(Status) in try DataFolder.hasDatabases(backup) }) else {
                throw ToolFailure(
                    .data, "\(backup) has no \(BackupManifest.fileName): it is no backup, or an incomplete one.")
            }
            if !isRollingBack {
                throw .usage("\(backup) is a data folder, and no backup. With --at it can be taken back to a time.")
            }
            try copyData(backup, to: target, path: path)
            return false
        }
        try copyArchive(backup, to: target)
        return true
    }

    /// Copies a data folder that no server uses, and keeps others out meanwhile.
    private static func copyData(_ folder: String, to target: PartialFolder, path: String?) throws(ToolFailure) {
        if let path, let outer = try BackupCommand.dataFolder(around: path) {
            throw .usage("\(path) is inside the data folder \(outer), of which it would become a part.")
        }
        let locked = try BackupCommand.data { () throws(Status) in
            try Stores.firestore(in: folder, isReadOnly: true)
        }
        defer { locked.close() }
        try copyFolder(folder, "", depth: 0, to: target) { name in
            // Locks, files that were about to be replaced, and what SQLite makes anew.
            name.hasPrefix(".") || name.hasSuffix(".new") || name.hasSuffix("-shm")
        }
    }

    private static func copyArchive(_ backup: String, to target: PartialFolder) throws(ToolFailure) {
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
        _ root: String, _ relative: String, depth: Int, to target: PartialFolder,
        without isLeftOut: (String) -> Bool = { _ in false }
    ) throws(ToolFailure) {
        let folder = relative.isEmpty ? root : "\(root)/\(relative)"
        if depth > depthMax { throw ToolFailure(.data, "\(folder) is too deep: no backup has such a folder.") }
        for name in try PartialFolder.names(folder).sorted() where !isLeftOut(name) {
            let path = relative.isEmpty ? name : "\(relative)/\(name)"
            var status = stat()
            guard lstat("\(root)/\(path)", &status) == 0 else { throw FileOutput.failure("read", "\(root)/\(path)") }
            switch status.st_mode & S_IFMT {
            case S_IFDIR: try copyFolder(root, path, depth: depth + 1, to: target, without: isLeftOut)
            case S_IFREG: try copyFile(root, path, bytes: Int(status.st_size), to: target)
            default: throw ToolFailure(.data, "\(root)/\(path) is no file: no backup and no data folder has it.")
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
