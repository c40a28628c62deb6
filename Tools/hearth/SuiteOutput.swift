import Glibc
import HearthExport
import HearthHost
import HearthModel
import HearthTree

/// A folder in the form of `firebase emulators:export`. It is filled under another name, and its metadata is written last.
///
/// What a folder that is replaced has besides the parts that are written stays: parts of other emulators, notes.
final class SuiteOutput {
    static let documentsName = "firestore_export"
    private static let databaseName = "database_export"

    private let target: String
    private let partial: String
    private let lock: FolderLock
    private let replaces: Bool
    private var namespaces: Set<String> = []
    private var isFinished = false

    /// - Parameter replaces: whether an export that is there is replaced.
    /// - Throws: ALREADY_EXISTS when another writer fills the same folder: in containers processes have the same number.
    init(_ path: String, replaces: Bool) throws(Status) {
        // A link stays a link: the folder that it names is replaced.
        target = Folders.exists(path) ? try Folders.resolved(path) : Folders.withoutEnd(path)
        partial = "\(target).partial-\(getpid())"
        self.replaces = replaces
        lock = try FolderLock.create(partial, for: target)
    }

    /// The path of the part of Firestore.
    var documentsPath: String { "\(partial)/\(Self.documentsName)" }

    /// The part of Firestore.
    func documents(_ database: DatabaseName) throws(Status) -> FolderOutput {
        try FolderOutput(
            documentsPath, name: Self.documentsName, database: database, collectionIDs: nil, replaces: false)
    }

    /// The path of the file for a namespace's data.
    func file(ofNamespace name: String) throws(Status) -> String {
        if namespaces.isEmpty { try Folders.create("\(partial)/\(Self.databaseName)") }
        namespaces.insert(name)
        return path(ofNamespace: name)
    }

    /// Leaves a namespace out after all.
    func removeFile(ofNamespace name: String) {
        Folders.remove(path(ofNamespace: name))
        namespaces.remove(name)
        if namespaces.isEmpty { Folders.remove("\(partial)/\(Self.databaseName)") }
    }

    private func path(ofNamespace name: String) -> String { "\(partial)/\(Self.databaseName)/\(name).json" }

    /// Makes all durable, writes the metadata, and gives the folder its name.
    func finish() throws(Status) {
        var others: [(name: String, value: JSONValue)] = []
        if SuiteFolder.isThere(target) { others = try keepOthers() }
        if !namespaces.isEmpty { try Folders.sync("\(partial)/\(Self.databaseName)") }
        let sink = try FileSink("\(partial)/\(SuiteFolder.metadataName)")
        try sink.write(metadata(others))
        try sink.finish()
        try Folders.sync(partial)
        try Folders.finish(partial, as: target, replaces: replaces, marker: SuiteFolder.metadataName)
        isFinished = true
    }

    /// Removes what is unfinished.
    func abandon() {
        if !isFinished { Folders.remove(partial) }
    }

    deinit { abandon() }

    /// Nobody reads the versions; the forms have had no other.
    private func metadata(_ others: [(name: String, value: JSONValue)]) -> [UInt8] {
        let version = (name: "version", value: JSONValue.string(HearthVersion.string))
        var members = [
            version,
            (
                "firestore",
                .object([
                    version, ("path", .string(Self.documentsName)),
                    (
                        "metadata_file",
                        .string("\(Self.documentsName)/\(Self.documentsName)\(ExportFolderWriter.overallSuffix)")
                    ),
                ])
            ),
        ]
        // A folder without files doesn't survive version control, and readers want one that is named.
        if !namespaces.isEmpty {
            members.append(("database", .object([version, ("path", .string(Self.databaseName))])))
        }
        var json: [UInt8] = []
        TreeJSON.append(.object(members + others), to: &json)
        return json + [UInt8(ascii: "\n")]
    }

    /// Copies what the folder that is replaced has besides the parts that are written.
    /// - Returns: the members of its metadata about other parts.
    private func keepOthers() throws(Status) -> [(name: String, value: JSONValue)] {
        let former = try SuiteFolder.Metadata(target)
        var own: Set = [SuiteFolder.metadataName, Self.documentsName, Self.databaseName]
        for path in [former.documentsFile, former.documentsFolder, former.databaseFolder] {
            guard let path, let first = path.split(separator: "/").first(where: { $0 != "." }) else { continue }
            own.insert(String(first))
        }
        // A managed export in the folder itself.
        if former.documentsFile?.split(separator: "/").filter({ $0 != "." }).count == 1 { own.insert("all_namespaces") }
        for name in try Folders.names(target) where !own.contains(name) {
            try Folders.copy("\(target)/\(name)", to: "\(partial)/\(name)")
        }
        return former.others
    }
}
