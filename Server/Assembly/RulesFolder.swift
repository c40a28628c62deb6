import HearthFirestoreServer
import HearthHost
import HearthModel
import HearthSQLite

/// The folder of a data folder with the rulesets and releases of all projects.
struct RulesFolder: RulesDisk {
    /// No project's folder has this name.
    private static let name = "+rules"

    private let path: String

    init(in dataFolder: String) {
        path = "\(dataFolder)/\(Self.name)"
    }

    func folders() throws(Status) -> [String] {
        guard FileStamp(path) != nil else { return [] }
        return try DataFolder.names(path)
    }

    func folder(of project: String) -> String { DatabaseFileName.component(project) }

    func path(_ name: String, in folder: String) -> String { "\(path)/\(folder)/\(name)" }

    func names(in folder: String) throws(Status) -> [String] { try DataFolder.names("\(path)/\(folder)") }

    func read(_ name: String, in folder: String) throws(Status) -> [UInt8]? {
        try TextFile.read(path(name, in: folder))
    }

    func write(_ bytes: [UInt8], _ name: String, in folder: String) throws(Status) {
        try DataFolder.makeFolder("\(path)/\(folder)")
        try DataFolder.write(bytes, path(name, in: folder))
    }

    func remove(_ name: String, in folder: String) throws(Status) {
        if try DataFolder.remove(path(name, in: folder)) { try DataFolder.synchronize("\(path)/\(folder)") }
    }
}
