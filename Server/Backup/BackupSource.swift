import HearthConcurrency
import HearthDocuments
import HearthEngine
import HearthHost
import HearthModel
import HearthSQLite
import HearthWire

import Glibc

/// What a backup is made of: the databases of a data folder, and all its other files.
package struct BackupSource: Sendable {
    /// The data folder.
    let folder: String
    let databases: SQLiteStoreProvider
    let namespaces: SQLiteStoreProvider
    /// Of the namespaces' files, inside the data folder.
    let namespaceFolder: String
    /// Whose namespaces they are.
    let project: String

    package init(
        folder: String, databases: SQLiteStoreProvider, namespaces: SQLiteStoreProvider, namespaceFolder: String,
        project: String
    ) {
        self.folder = folder
        self.databases = databases
        self.namespaces = namespaces
        self.namespaceFolder = namespaceFolder
        self.project = project
    }

    /// The files of the data folder that belong to no database, relative to it: rules, triggers, full ids of shortened names.
    /// Hidden files, links and files that are being replaced are none of them.
    func plainFiles() throws(Status) -> [String] {
        var found: [String] = []
        try addFiles(of: "", depth: 0, to: &found)
        return found.sorted()
    }

    private static let depthMax = 8

    private func addFiles(of relative: String, depth: Int, to found: inout [String]) throws(Status) {
        for name in try DataFolder.names(relative.isEmpty ? folder : "\(folder)/\(relative)") {
            if name.hasPrefix(".") || name.hasSuffix(".new") || DatabaseFileName.isOfDatabase(name) { continue }
            if relative.isEmpty, name == BackupManifest.fileName { continue }
            let path = relative.isEmpty ? name : "\(relative)/\(name)"
            var status = stat()
            // It may have been removed since.
            guard lstat("\(folder)/\(path)", &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG: found.append(path)
            case S_IFDIR where depth < Self.depthMax: try addFiles(of: path, depth: depth + 1, to: &found)
            default: break
            }
        }
    }
}

/// One backup, on a thread of its own.
struct BackupRun {
    let source: BackupSource
    /// Throws when the backup has to end.
    let check: () throws(Status) -> Void
    private(set) var manifest: BackupManifest
    /// The paths of the files so far that are no database's contents.
    private var written: Set<String> = []
    /// The time between the first and the last commit that the databases' images end with.
    private(set) var spreadMilliseconds = 0

    init(_ source: BackupSource, check: @escaping () throws(Status) -> Void) {
        self.source = source
        self.check = check
        manifest = BackupManifest(hearth: HearthVersion.string, started: Self.now(), finished: "")
    }

    private static func now() -> String {
        let now = Log.wallClock()
        return RFC3339.format(seconds: now.seconds, nanoseconds: Int32(now.nanoseconds / 1000 * 1000))
    }

    /// - Parameter target: called when the images are open, with how the backup goes on; nothing was written before.
    mutating func run(to target: () throws(Status) -> any BackupTarget) throws(Status) {
        let databases = try source.databases.beginImages()
        defer { databases.end() }
        let namespaces = try source.namespaces.beginImages()
        defer { namespaces.end() }
        try makeImages([databases, namespaces])
        let target = try target()
        for path in try source.plainFiles() { try copy(path, to: target) }
        while let next = try databases.next(check: check) {
            try copy(next.member, next.image, isNamespace: false, to: target)
        }
        while let next = try namespaces.next(check: check) {
            try copy(next.member, next.image, isNamespace: true, to: target)
        }
        manifest.finished = Self.now()
        let json = manifest.json
        try target.begin(BackupManifest.fileName, bytes: json.count)
        try target.write(json)
        try target.end()
        try target.finish()
    }

    private mutating func makeImages(_ sessions: [ImageSession]) throws(Status) {
        let now = MonotonicTime.now
        for session in sessions { session.hold() }
        for session in sessions {
            session.waitUntilHeld(until: now.advanced(milliseconds: Limits.backupHoldMillisecondsMax))
        }
        for session in sessions { session.release() }
        for session in sessions {
            try session.waitForImages(
                until: now.advanced(milliseconds: Limits.backupImageSecondsMax * 1000), check: check)
        }
        spreadMilliseconds = sessions.map(\.spreadMilliseconds).max() ?? 0
    }

    private mutating func copy(
        _ member: ImageSession.Member, _ image: any StoreImage, isNamespace: Bool, to target: any BackupTarget
    ) throws(Status) {
        defer { image.close() }
        let path = isNamespace ? "\(source.namespaceFolder)/\(member.file)" : member.file
        try addIDs(of: member, isNamespace: isNamespace, to: target)
        let digest = SHA256Digest()
        try target.begin(path, bytes: image.sizeBytes)
        var offset = 0
        while offset < image.sizeBytes {
            try check()
            var outcome: Result<Void, Status> = .success(())
            let bytes = [UInt8](
                unsafeUninitializedCapacity: min(StoreImages.pieceBytes, image.sizeBytes - offset)
            ) { buffer, count in
                count = buffer.count
                let piece = UnsafeMutableRawBufferPointer(buffer)
                outcome = Result { () throws(Status) in try image.read(at: offset, into: piece) }
                switch outcome {
                case .success: digest.add(UnsafeRawBufferPointer(piece))
                case .failure: piece.initializeMemory(as: UInt8.self, repeating: 0)
                }
            }
            do throws(Status) { try outcome.get() } catch {
                throw Status(error.code, "\(member.name.string): \(error.message)")
            }
            try target.write(bytes)
            offset += bytes.count
        }
        try target.end()
        let file = BackupManifest.File(path: path, bytes: offset, sha256: digest.finish())
        manifest.databases.append(try entry(member, image, file, isNamespace: isNamespace))
    }

    /// A database that was deleted since has no files with its full ids any more, without which nobody finds it.
    private mutating func addIDs(
        of member: ImageSession.Member, isNamespace: Bool, to target: any BackupTarget
    ) throws(Status) {
        let prefix = isNamespace ? "\(source.namespaceFolder)/" : ""
        for (file, id) in DatabaseFileName.idFiles(of: member.name) where written.insert(prefix + file).inserted {
            let bytes = Array(id.utf8)
            let digest = SHA256Digest()
            bytes.withUnsafeBytes { digest.add($0) }
            try target.begin(prefix + file, bytes: bytes.count)
            try target.write(bytes)
            try target.end()
            manifest.files.append(
                BackupManifest.File(path: prefix + file, bytes: bytes.count, sha256: digest.finish()))
        }
    }

    private func entry(
        _ member: ImageSession.Member, _ image: any StoreImage, _ file: BackupManifest.File, isNamespace: Bool
    ) throws(Status) -> BackupManifest.Database {
        if isNamespace {
            return BackupManifest.Database(
                project: source.project, name: member.name.database, isNamespace: true, file: file)
        }
        let version = Timestamp(microseconds: try Database.version(of: image.contents))
        return BackupManifest.Database(
            project: member.name.project, name: member.name.database, isNamespace: false, file: file,
            version: RFC3339.format(seconds: version.seconds, nanoseconds: Int32(version.nanoseconds)),
            documents: try image.contents.count(.documents, KeyRange(lower: [], upper: nil), limit: .max))
    }

    /// Files are replaced and not changed, so that an open one is whole.
    private mutating func copy(_ path: String, to target: any BackupTarget) throws(Status) {
        try check()
        let full = "\(source.folder)/\(path)"
        let descriptor = open(full, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        if descriptor < 0 {
            if errno == ENOENT { return }
            throw DataFolder.failure("read \(full)")
        }
        defer { close(descriptor) }
        var status = stat()
        if fstat(descriptor, &status) != 0 { throw DataFolder.failure("read \(full)") }
        let size = Int(status.st_size)
        let digest = SHA256Digest()
        try target.begin(path, bytes: size)
        var offset = 0
        while offset < size {
            try check()
            let bytes = [UInt8](
                unsafeUninitializedCapacity: min(StoreImages.pieceBytes, size - offset)
            ) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            if bytes.isEmpty { throw .unavailable("\(full) has become shorter, or can't be read.") }
            bytes.withUnsafeBytes { digest.add($0) }
            try target.write(bytes)
            offset += bytes.count
        }
        try target.end()
        written.insert(path)
        manifest.files.append(BackupManifest.File(path: path, bytes: size, sha256: digest.finish()))
    }
}
