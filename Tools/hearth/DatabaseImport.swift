import HearthToolSupport
import HearthModel
import HearthTree

/// Replaces the data of a location by a file of any size: in one request when it is small, otherwise in batches, each
/// with the values of several paths of the file.
final class DatabaseImport {
    /// The size of a batch.
    private static let batchBytes = 8 << 20
    private static let batchMembersMax = 20_000
    /// Values up to this size are not split.
    private static let valueBytesMax = 1 << 20

    private let connection: DatabaseConnection
    private let path: TreePath
    /// Whether children of the location that the file does not contain stay.
    private let merges: Bool
    private let string: JSONStream
    private let progress = ProgressLine()
    private var batch: [UInt8] = []
    private var memberCount = 0

    static func run(
        _ path: TreePath, _ file: String?, merges: Bool, _ connection: DatabaseConnection
    ) throws(ToolFailure) {
        let job = DatabaseImport(connection, path, JSONStream(try FileInput(file)), merges: merges)
        if !merges, let whole = try job.string.value(sizeBytesMax: Self.valueBytesMax) {
            try job.string.expectEnd()
            _ = try connection.request("PUT", path, Self.parameters, whole)
            return
        }
        if !merges { _ = try connection.request("DELETE", path, Self.parameters) }
        try job.value(.root)
        try job.string.expectEnd()
        try job.send()
        job.progress.finish { "imported \(ProgressLine.megabytes(job.string.position))" }
    }

    private static let parameters = [
        ("print", "silent"), ("writeSizeLimit", "unlimited"), ("disableTriggers", "true"),
    ]

    private init(_ connection: DatabaseConnection, _ path: TreePath, _ string: JSONStream, merges: Bool) {
        self.connection = connection
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
                _ = try connection.request("PUT", path, Self.parameters, whole)
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
            _ = try connection.request("PUT", path.child(.priority), Self.parameters, priority)
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
        _ = try connection.request("PATCH", path, Self.parameters, batch + [UInt8(ascii: "}")])
        batch.removeAll(keepingCapacity: true)
        memberCount = 0
        progress.update { [string] in
            let total = string.sizeBytes.map { " of \(ProgressLine.megabytes($0))" } ?? ""
            return "imported \(ProgressLine.megabytes(string.position))\(total)"
        }
    }
}
