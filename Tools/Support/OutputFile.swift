import Glibc

/// Files that a tool writes.
package enum OutputFile {
    /// Creates the file, or replaces its content.
    package static func write(_ bytes: [UInt8], to path: String) throws(ToolFailure) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        if descriptor < 0 { throw failure(path) }
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            if count <= 0 { throw failure(path) }
            rest = rest.dropFirst(count)
        }
    }

    package static func write(_ string: String, to path: String) throws(ToolFailure) {
        try write(Array(string.utf8), to: path)
    }

    /// Creates the missing parent folders of a path.
    package static func makeFolders(of path: String) throws(ToolFailure) {
        for end in path.indices.dropFirst() where path[end] == "/" {
            if mkdir(String(path[..<end]), 0o755) != 0, errno != EEXIST { throw failure(path) }
        }
    }

    package static func failure(_ path: String) -> ToolFailure {
        ToolFailure(.data, "Cannot write \(path): \(String(cString: strerror(errno))).")
    }
}
