import HearthExport
import HearthHost
import HearthModel
import HearthTree

/// A folder of `firebase emulators:export`, as far as its parts are Hearth's: one of Firestore's databases, and namespaces
/// of the Realtime Database.
struct SuiteFolder {
    struct Namespace: Equatable {
        var name: String
        /// Of the file with its data.
        var path: String
    }

    /// The file that makes a folder one of these.
    static let metadataName = "firebase-export-metadata.json"
    private static let metadataBytesMax = 1 << 20
    private static let namespaceSuffix = ".json"

    /// The path of the managed export's `*.overall_export_metadata`; nil without one.
    let documents: String?
    let namespaces: [Namespace]
    /// Names of parts that Hearth doesn't keep.
    let otherParts: [String]
    /// Sentences about flaws that do no harm.
    let warnings: [String]

    static func isThere(_ path: String) -> Bool { Folders.exists("\(path)/\(metadataName)") }

    /// Reads the metadata, and finds the files of all parts.
    /// - Throws: an error that names what is missing, damaged, or outside of the folder.
    init(_ path: String) throws(Status) {
        let folder = Folders.withoutEnd(path) + "/"
        let source = folder + Self.metadataName
        let metadata = try Metadata(path)
        let root = try Folders.resolved(folder)
        documents = try metadata.documentsFile.map { name throws(Status) in
            try Folders.path(name, in: folder, below: root, named: source).path
        }
        // git keeps no empty folders: the folder of an emulator without data is not in a copy of a repository. Firebase's
        // tools take such an export with `--only firestore`.
        if let name = metadata.databaseFolder, Self.isAbsent(name, in: folder) {
            namespaces = []
            warnings = ["\(source): database.path: The folder \(folder)\(name) is not there, and counts as empty."]
        } else {
            namespaces =
                try metadata.databaseFolder.map { name throws(Status) in
                    let path = try Folders.path(name, in: folder, below: root, named: source).path
                    return try Self.namespaces(Folders.withoutEnd(path), below: root, named: source)
                } ?? []
            warnings = []
        }
        otherParts = metadata.others.map(\.name)
    }

    /// Whether a name could be in the folder, and is not.
    private static func isAbsent(_ name: String, in folder: String) -> Bool {
        !name.utf8.contains(0) && !name.split(separator: "/").contains("..") && !Folders.exists(folder + name)
    }

    private static func namespaces(
        _ folder: String, below root: String, named source: String
    ) throws(Status) -> [Namespace] {
        guard Folders.isFolder(folder) else { throw .invalidArgument("\(source) names \(folder), which is no folder.") }
        var found: [Namespace] = []
        for file in try Folders.names(folder) where file.hasSuffix(namespaceSuffix) {
            let name = String(file.dropLast(namespaceSuffix.count))
            if !RealtimeName.isValid(name) {
                throw .invalidArgument("\(folder)/\(file): \"\(name)\" is no name of a Realtime Database.")
            }
            found.append(
                Namespace(name: name, path: try Folders.path(file, in: folder + "/", below: root, named: source).path))
        }
        return found
    }

    // MARK: Metadata

    /// `firebase-export-metadata.json`.
    struct Metadata {
        /// What the members name, relative to the folder; nil without such a part.
        let documentsFile: String?
        let documentsFolder: String?
        let databaseFolder: String?
        /// The parts of other emulators.
        let others: [(name: String, value: JSONValue)]

        /// - Parameter folder: that has the file.
        init(_ folder: String) throws(Status) {
            let file = "\(Folders.withoutEnd(folder))/\(metadataName)"
            let bytes = try FileSource.contents(file, sizeBytesMax: metadataBytesMax)
            let root: JSONValue
            do throws(TreeDataError) {
                root = try TreeJSON.value(bytes)
            } catch {
                throw .invalidArgument("\(file): \(error.message)")
            }
            guard let members = root.object else { throw .invalidArgument("\(file): this is no object.") }
            documentsFile = try Self.string("metadata_file", of: "firestore", root, file)
            documentsFolder = root["firestore"]?["path"]?.string
            databaseFolder = try Self.string("path", of: "database", root, file)
            others = members.filter { !["version", "firestore", "database"].contains($0.name) }
        }

        private static func string(
            _ name: String, of part: String, _ root: JSONValue, _ file: String
        ) throws(Status) -> String? {
            guard let value = root[part], !value.isNull else { return nil }
            guard let string = value[name]?.string, !string.isEmpty else {
                throw .invalidArgument("\(file): \"\(part)\" has no \"\(name)\".")
            }
            if string.hasPrefix("/") {
                throw .invalidArgument("\(file): \"\(part)\" names a path outside of the folder: \(string).")
            }
            return string
        }
    }
}
