import HearthHost
import HearthModel
import HearthWire

/// What a backup has: its last file, `manifest.json`.
///
///     {"format": 1, "hearth": VERSION, "started": TIME, "finished": TIME,
///      "databases": [{"project", "database" | "namespace", "file", "bytes", "sha256", "version"?, "documents"?}],
///      "files": [{"file", "bytes", "sha256"}],
///      "sha256": DIGEST}
///
/// The last member is the SHA-256 of the bytes before it, up to the bracket that ends the list. A manifest without it ends with
/// that list: backups of before had none.
///
/// `version` is the time of the last commit; it and `documents` are of Firestore's databases. Members that are not listed here
/// are left for later versions of the same format.
package struct BackupManifest: Sendable, Equatable {
    package static let fileName = "manifest.json"
    /// The newest that this program reads, and that it writes.
    package static let format = 1

    package struct File: Sendable, Equatable {
        /// Relative to the folder.
        package var path: String
        package var bytes: Int
        package var sha256: String

        package init(path: String, bytes: Int, sha256: String) {
            self.path = path
            self.bytes = bytes
            self.sha256 = sha256
        }
    }

    package struct Database: Sendable, Equatable {
        package var project: String
        package var name: String
        package var isNamespace: Bool
        package var file: File
        /// The time of the last commit, RFC 3339.
        package var version: String?
        package var documents: Int?

        package init(
            project: String, name: String, isNamespace: Bool, file: File, version: String? = nil,
            documents: Int? = nil
        ) {
            self.project = project
            self.name = name
            self.isNamespace = isNamespace
            self.file = file
            self.version = version
            self.documents = documents
        }
    }

    package var hearth: String
    package var started: String
    package var finished: String
    package var databases: [Database] = []
    package var files: [File] = []

    package init(hearth: String, started: String, finished: String) {
        self.hearth = hearth
        self.started = started
        self.finished = finished
    }

    package var allFiles: [File] { databases.map(\.file) + files }

    // MARK: Writing

    package var json: [UInt8] {
        var writer = JSONWriter()
        writer.raw("{\"format\": \(Self.format), \"hearth\": ")
        writer.string(hearth)
        writer.raw(", \"started\": ")
        writer.string(started)
        writer.raw(", \"finished\": ")
        writer.string(finished)
        writer.raw(",\n\"databases\": [")
        for (index, database) in databases.enumerated() {
            writer.raw(index > 0 ? ",\n{\"project\": " : "\n{\"project\": ")
            writer.string(database.project)
            writer.raw(database.isNamespace ? ", \"namespace\": " : ", \"database\": ")
            writer.string(database.name)
            Self.append(database.file, ", ", to: &writer)
            if let version = database.version {
                writer.raw(", \"version\": ")
                writer.string(version)
            }
            if let documents = database.documents { writer.raw(", \"documents\": \(documents)") }
            writer.raw("}")
        }
        writer.raw("],\n\"files\": [")
        for (index, file) in files.enumerated() {
            writer.raw(index > 0 ? ",\n{" : "\n{")
            Self.append(file, "", to: &writer)
            writer.raw("}")
        }
        writer.raw("]")
        return writer.bytes + Array("\(Self.digestHead)\(Self.digest(of: writer.bytes))\(Self.digestTail)".utf8)
    }

    private static func append(_ file: File, _ separator: String, to writer: inout JSONWriter) {
        writer.raw("\(separator)\"file\": ")
        writer.string(file.path)
        writer.raw(", \"bytes\": \(file.bytes), \"sha256\": \"\(file.sha256)\"")
    }

    // MARK: Reading

    /// - Throws: INVALID_ARGUMENT with the member that is wrong; FAILED_PRECONDITION for a newer format.
    package init(parsing bytes: [UInt8], name: String = BackupManifest.fileName) throws(Status) {
        let root = try ConfigurationValue(parsing: bytes, file: name)
        let format = try Self.required(root, "format").integer(1...Int(Int32.max))
        if format > Self.format {
            throw .failedPrecondition(
                "\(name): the backup has format \(format), which is newer than \(Self.format), the newest that this hearth knows;"
                    + " use a newer hearth.")
        }
        try Self.checkDigest(of: bytes, root, name: name)
        hearth = try Self.required(root, "hearth").string()
        started = try Self.required(root, "started").string()
        finished = try Self.required(root, "finished").string()
        for entry in try Self.required(root, "databases").elements() {
            let namespace = try entry.member("namespace")
            let name = namespace == nil ? try Self.required(entry, "database") : namespace
            databases.append(
                Database(
                    project: try Self.required(entry, "project").string(), name: try name?.string() ?? "",
                    isNamespace: namespace != nil,
                    file: try Self.file(entry), version: try entry.member("version")?.string(),
                    documents: try entry.member("documents")?.integer(0...Self.bytesMax)))
        }
        for entry in try Self.required(root, "files").elements() { files.append(try Self.file(entry)) }
        var paths: Set<String> = []
        var sizeBytes = 0
        for file in allFiles {
            if !paths.insert(file.path).inserted { throw root.failure("The file \(file.path) has two entries.") }
            // Two such numbers do not overflow, and a sum that is too large goes no further.
            sizeBytes += file.bytes
            if sizeBytes > Self.bytesMax {
                throw root.failure("The files have more than \(Self.bytesMax) bytes together.")
            }
        }
    }

    private static let digestHead = ",\n\"sha256\": \""
    private static let digestTail = "\"}\n"
    private static let digestBytes = 64

    private static func digest(of bytes: some Collection<UInt8>) -> String {
        let digest = SHA256Digest()
        Array(bytes).withUnsafeBytes { digest.add($0) }
        return digest.finish()
    }

    /// - Throws: DATA_LOSS when the manifest isn't what was written.
    private static func checkDigest(
        of bytes: [UInt8], _ root: ConfigurationValue, name: String
    ) throws(Status) {
        if bytes.suffix(3).elementsEqual("]}\n".utf8), try root.member("sha256") == nil { return }
        let (head, tail) = (Array(digestHead.utf8), Array(digestTail.utf8))
        let content = bytes.dropLast(head.count + digestBytes + tail.count)
        let end = bytes[content.endIndex...]
        guard end.starts(with: head), end.suffix(tail.count).elementsEqual(tail),
            end.dropFirst(head.count).prefix(digestBytes).elementsEqual(digest(of: content).utf8)
        else { throw Status(.dataLoss, "\(name) is damaged: its SHA-256 differs, or is missing.") }
    }

    /// Numbers of JSON are exact up to here.
    private static let bytesMax = 1 << 53

    private static func required(_ value: ConfigurationValue, _ name: String) throws(Status) -> ConfigurationValue {
        guard let member = try value.member(name) else { throw value.failure("\"\(name)\" is missing.") }
        return member
    }

    private static func file(_ entry: ConfigurationValue) throws(Status) -> File {
        let path = try required(entry, "file")
        let string = try path.string()
        guard let problem = BackupPath.problem(string) ?? (string == fileName ? "is the manifest" : nil) else {
            return File(
                path: string, bytes: try required(entry, "bytes").integer(0...bytesMax),
                sha256: try required(entry, "sha256").string())
        }
        throw path.failure("\"\(string)\" \(problem).")
    }

    // MARK: Comparing

    /// What differs between the manifest and the files that are there, as a sentence that names the file; nil when nothing does.
    package func difference(from found: [File]) -> String? {
        let present = Dictionary(found.map { ($0.path, $0) }) { first, _ in first }
        for file in allFiles {
            guard let other = present[file.path] else { return "\(file.path) is missing." }
            if other.bytes != file.bytes {
                return "\(file.path) has \(other.bytes) bytes, and had \(file.bytes) when the backup was made."
            }
            if other.sha256 != file.sha256 { return "\(file.path) is damaged: its SHA-256 differs." }
        }
        let listed = Set(allFiles.map(\.path))
        return found.first { !listed.contains($0.path) }.map { "\($0.path) has no entry in \(Self.fileName)." }
    }
}

/// The names of a backup's files, which come from outside.
package enum BackupPath {
    /// Why a path is none that a backup has; nil when it is.
    package static func problem(_ path: String) -> String? {
        if path.isEmpty { return "is empty" }
        if path.utf8.count > 4096 { return "is too long" }
        if path.utf8.first == UInt8(ascii: "/") { return "is an absolute path" }
        if path.utf8.contains(0) { return "has a NUL" }
        // Of bytes: of characters, a slash and the accent behind it are one.
        let components = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if components.count > Limits.backupPathComponentsMax { return "has too many components" }
        for bytes in components {
            let component = Substring(bytes)
            if component.isEmpty || component == "." || component == ".." {
                return "has the component \"\(component)\""
            }
            if component.utf8.count > 255 { return "has a component that is too long" }
        }
        return nil
    }
}
