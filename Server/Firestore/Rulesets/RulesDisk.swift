import HearthModel
import Synchronization

/// Where rulesets and releases are kept: a folder for each project, with small files.
package protocol RulesDisk: Sendable {
    /// The folders that there are, one for each project.
    func folders() throws(Status) -> [String]
    /// The name of a project's folder. Different projects may have the same name only by accident.
    func folder(of project: String) -> String
    /// Of a file, for operators.
    func path(_ name: String, in folder: String) -> String
    /// The names of a folder's files.
    func names(in folder: String) throws(Status) -> [String]
    /// Nil when there is no such file.
    func read(_ name: String, in folder: String) throws(Status) -> [UInt8]?
    /// Replaces or makes a file, durably and all or nothing; makes the folder, too.
    func write(_ bytes: [UInt8], _ name: String, in folder: String) throws(Status)
    /// Removes a file if it is there, durably.
    func remove(_ name: String, in folder: String) throws(Status)
}

/// For servers without a data folder.
package final class MemoryRulesDisk: RulesDisk {
    private struct State {
        var files: [String: [String: [UInt8]]] = [:]
        var sizeBytes = 0
    }

    private let state = Mutex(State())

    package init() {}

    package func folders() -> [String] { state.withLock { Array($0.files.keys) } }
    package func folder(of project: String) -> String { project }
    package func path(_ name: String, in folder: String) -> String { "\(folder)/\(name)" }
    package func names(in folder: String) -> [String] { state.withLock { Array(($0.files[folder] ?? [:]).keys) } }

    package func read(_ name: String, in folder: String) -> [UInt8]? { state.withLock { $0.files[folder]?[name] } }

    package func write(_ bytes: [UInt8], _ name: String, in folder: String) throws(Status) {
        try state.withLock { state throws(Status) in
            let sizeBytes = state.sizeBytes + bytes.count - (state.files[folder]?[name]?.count ?? 0)
            if sizeBytes > Limits.rulesInMemoryBytesMax {
                throw .resourceExhausted(
                    "A server without a data folder keeps \(Limits.rulesInMemoryBytesMax >> 20) MiB of rulesets; delete some."
                )
            }
            state.files[folder, default: [:]][name] = bytes
            state.sizeBytes = sizeBytes
        }
    }

    package func remove(_ name: String, in folder: String) {
        state.withLock { state in
            state.sizeBytes -= state.files[folder]?.removeValue(forKey: name)?.count ?? 0
        }
    }
}
