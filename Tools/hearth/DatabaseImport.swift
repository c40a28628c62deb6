import HearthToolSupport
import HearthModel
import HearthTree

/// What takes the writes of an import.
protocol DatabaseWriting {
    /// - Parameter body: JSON; empty for a DELETE.
    func write(_ method: String, _ path: TreePath, _ body: [UInt8]) throws(ToolFailure)
}

/// A server, which calls no functions for it.
extension DatabaseConnection: DatabaseWriting {
    func write(_ method: String, _ path: TreePath, _ body: [UInt8]) throws(ToolFailure) {
        let parameters = [("print", "silent"), ("writeSizeLimit", "unlimited"), ("disableTriggers", "true")]
        _ = try request(method, path, parameters, body)
    }
}

/// What a server checks of each write, without one.
struct DatabaseVerification: DatabaseWriting {
    func write(_ method: String, _ path: TreePath, _ body: [UInt8]) throws(ToolFailure) {
        _ = try Self.changes(method, path, body)
    }

    /// The changes that a write makes.
    static func changes(_ method: String, _ path: TreePath, _ body: [UInt8]) throws(ToolFailure) -> [TreeChange] {
        do throws(TreeDataError) {
            switch method {
            case "DELETE": return [TreeChange(path: path, node: .empty)]
            case "PATCH": return try TreeJSON.merge(body, at: path).changes
            default:
                if path.last != .priority {
                    return [
                        TreeChange(path: path, node: try TreeJSON.node(body, limits: TreeLimits.standard.below(path)))
                    ]
                }
                let leaf = Array("{\".value\":true,\".priority\":".utf8) + body + [UInt8(ascii: "}")]
                let priority = try TreeJSON.node(leaf).priority
                return [TreeChange(path: path, node: priority.map { Node($0) } ?? .empty)]
            }
        } catch {
            throw ToolFailure(.data, error.message)
        }
    }
}

/// Replaces the data of a location by a file of any size: in one request when it is small, otherwise in batches, each
/// with the values of several paths of the file.
final class DatabaseImport {
    /// The size of a batch.
    private static let batchBytes = 8 << 20
    private static let batchMembersMax = 20_000
    /// Values up to this size are not split.
    private static let valueBytesMax = 1 << 20

    private let target: any DatabaseWriting
    private let path: TreePath
    /// Whether children of the location that the file does not contain stay.
    private let merges: Bool
    private let string: JSONStream
    private let progress: ProgressLine
    private var batch: [UInt8] = []
    private var memberCount = 0

    static func run(
        _ path: TreePath, _ input: FileInput, merges: Bool = false, to target: any DatabaseWriting,
        isQuiet: Bool = false
    ) throws(ToolFailure) {
        let progress = ProgressLine(isQuiet: isQuiet)
        let job = DatabaseImport(target, path, JSONStream(input), merges: merges, progress)
        if !merges, let whole = try job.string.value(sizeBytesMax: Self.valueBytesMax) {
            try job.string.expectEnd()
            return try target.write("PUT", path, whole)
        }
        if !merges { try target.write("DELETE", path, []) }
        try job.value(.root)
        try job.string.expectEnd()
        try job.send()
        job.progress.finish { "imported \(DocumentProgress.size(job.string.position))" }
    }

    private init(
        _ target: any DatabaseWriting, _ path: TreePath, _ string: JSONStream, merges: Bool, _ progress: ProgressLine
    ) {
        self.target = target
        self.progress = progress
        self.merges = merges
        self.path = path
        self.string = string
    }

    /// The next value of the file: whole when it is small, otherwise child by child.
    private func value(_ location: TreePath) throws(ToolFailure) {
        let isRoot = location.isRoot
        if !isRoot, let whole = try string.value(sizeBytesMax: Self.valueBytesMax) { return try add(location, whole) }
        if merges, location.count == 1 {
            // A child is replaced, whether it is written in one step or in several.
            try add(location, Array("null".utf8))
            try send()
        }
        switch try string.peek() {
        case UInt8(ascii: "{"): try object(location)
        case UInt8(ascii: "["):
            var index = 0
            try string.array { [self] () throws(ToolFailure) in
                try value(location.child(TreeKey(index)))
                index += 1
            }
        default:
            guard let whole = try string.value(sizeBytesMax: Limits.treeStringSizeBytesMax * 6 + 2) else {
                throw string.failure("a string is too long")
            }
            if isRoot {
                try target.write("PUT", path, whole)
            } else {
                try add(location, whole)
            }
        }
    }

    private func object(_ location: TreePath) throws(ToolFailure) {
        // A priority cannot be set before the location has data.
        var priority: [UInt8]?
        try string.object { [self] name throws(ToolFailure) in
            switch name {
            case ".priority": priority = try string.value(sizeBytesMax: Self.valueBytesMax)
            case ".value": try value(location)
            default: try value(location.child(TreeKey(name)))
            }
        }
        guard let priority else { return }
        try send()
        if location.isRoot {
            try target.write("PUT", path.child(.priority), priority)
        } else {
            try add(location.child(.priority), priority)
        }
    }

    private func add(_ location: TreePath, _ value: [UInt8]) throws(ToolFailure) {
        batch.append(batch.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
        TreeJSON.appendString(location.string, to: &batch)
        batch.append(UInt8(ascii: ":"))
        batch += value
        memberCount += 1
        if batch.count >= Self.batchBytes || memberCount >= Self.batchMembersMax { try send() }
    }

    private func send() throws(ToolFailure) {
        if batch.isEmpty { return }
        try target.write("PATCH", path, batch + [UInt8(ascii: "}")])
        batch.removeAll(keepingCapacity: true)
        memberCount = 0
        progress.update { [string] in
            let total = string.sizeBytes.map { " of \(DocumentProgress.size($0))" } ?? ""
            return "imported \(DocumentProgress.size(string.position))\(total)"
        }
    }
}
