import HearthToolSupport
import HearthTree

/// Writes all data of a location: in one request, or child by child when it exceeds the limit of one response.
final class DatabaseExport {
    private let connection: DatabaseConnection
    private let output: FileOutput
    private let progress: ProgressLine
    private var sizeBytes = 0
    private var firstBytes: [UInt8] = []

    private static let namesPerPage = 10_000
    private static let namesPerWindow = 1000

    /// - Returns: the size, and whether the location has data.
    @discardableResult
    static func run(
        _ path: TreePath, to output: FileOutput, _ connection: DatabaseConnection, isQuiet: Bool = false
    ) throws(ToolFailure) -> (sizeBytes: Int, isEmpty: Bool) {
        let export = DatabaseExport(connection, output, ProgressLine(isQuiet: isQuiet))
        try export.node(path)
        try export.write([UInt8(ascii: "\n")])
        try export.output.finish()
        export.progress.finish { "exported \(DocumentProgress.size(export.sizeBytes))" }
        return (export.sizeBytes, export.firstBytes == Array("null".utf8))
    }

    private init(_ connection: DatabaseConnection, _ output: FileOutput, _ progress: ProgressLine) {
        self.connection = connection
        self.output = output
        self.progress = progress
    }

    private func write(_ bytes: [UInt8]) throws(ToolFailure) {
        sizeBytes += bytes.count
        if firstBytes.count < 4 { firstBytes += bytes.prefix(4 - firstBytes.count) }
        try output.write(bytes)
        progress.update { "exported \(DocumentProgress.size(sizeBytes))" }
    }

    private func node(_ path: TreePath) throws(ToolFailure) {
        let refusal = try connection.download(path, [("format", "export")]) { [self] bytes throws(ToolFailure) in
            try write(bytes)
        }
        guard let refusal else { return }
        guard refusal.isTooLarge else { throw connection.failure(refusal, path) }
        try children(path)
    }

    /// A location whose data is so large that it must have children.
    private func children(_ path: TreePath) throws(ToolFailure) {
        var separator = UInt8(ascii: "{")
        var last: String?
        while true {
            let names = try names(path, after: last)
            for start in stride(from: 0, to: names.count, by: Self.namesPerWindow) {
                try window(path, names[start..<min(start + Self.namesPerWindow, names.count)], &separator)
            }
            guard let end = names.last, names.count == Self.namesPerPage else { break }
            last = end
        }
        let priority = try connection.request("GET", path.child(.priority), [])
        if !priority.starts(with: "null".utf8) {
            try write([separator] + Array("\".priority\":".utf8) + priority)
            separator = UInt8(ascii: ",")
        }
        // The data may have been deleted since.
        try write(separator == UInt8(ascii: "{") ? Array("null".utf8) : [UInt8(ascii: "}")])
    }

    private func names(_ path: TreePath, after last: String?) throws(ToolFailure) -> [String] {
        var parameters = [("shallow", "true"), ("orderBy", "\"$key\""), ("limitToFirst", String(Self.namesPerPage))]
        if let last { parameters.append(("startAfter", Self.quoted(last))) }
        let string = try connection.request("GET", path, parameters)
        do throws(TreeDataError) {
            return (try TreeJSON.value(string).object ?? []).map(\.name)
        } catch {
            throw ToolFailure(.failed, "\(path): the server's list of children can't be read.")
        }
    }

    private static func quoted(_ string: String) -> String {
        var bytes: [UInt8] = []
        TreeJSON.appendString(string, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Several adjacent children: together, or in halves when that is too much.
    private func window(
        _ path: TreePath, _ names: ArraySlice<String>, _ separator: inout UInt8
    ) throws(ToolFailure) {
        guard let first = names.first, let last = names.last else { return }
        if names.count == 1 {
            var name: [UInt8] = [separator]
            TreeJSON.appendString(first, to: &name)
            try write(name + [UInt8(ascii: ":")])
            separator = UInt8(ascii: ",")
            return try node(path.child(TreeKey(first)))
        }
        let members = Members(separator)
        let parameters = [
            ("format", "export"), ("orderBy", "\"$key\""), ("startAt", Self.quoted(first)),
            ("endAt", Self.quoted(last)),
        ]
        let refusal = try connection.download(path, parameters) { [self] bytes throws(ToolFailure) in
            try write(members.take(bytes))
        }
        separator = members.separator
        guard let refusal else { return }
        guard refusal.isTooLarge else { throw connection.failure(refusal, path) }
        let middle = names.startIndex + names.count / 2
        try window(path, names[..<middle], &separator)
        try window(path, names[middle...], &separator)
    }

    /// The members of an object whose JSON arrives in pieces: without its braces, after the earlier members.
    private final class Members {
        private(set) var separator: UInt8
        private var isFirst = true
        /// The last byte is the closing brace.
        private var heldBack: UInt8?

        init(_ separator: UInt8) { self.separator = separator }

        func take(_ bytes: [UInt8]) -> [UInt8] {
            var rest = bytes[...]
            while rest.last == UInt8(ascii: "\n") { rest = rest.dropLast() }
            if isFirst, !rest.isEmpty {
                isFirst = false
                rest = rest.dropFirst()
            }
            guard let last = rest.last else { return [] }
            var output: [UInt8] = []
            // The held byte was not the end.
            if let heldBack { output.append(heldBack) }
            output += rest.dropLast()
            heldBack = last
            if output.isEmpty { return [] }
            if separator != 0, !hasBegun {
                hasBegun = true
                output.insert(separator, at: 0)
                separator = UInt8(ascii: ",")
            }
            return output
        }

        private var hasBegun = false
    }
}
