import Glibc

/// A folder that is removed with all its contents when the object is freed.
package final class TemporaryFolder: Sendable {
    package let path: String

    package init() {
        // In memory where such a file system exists: thousands of commits would wait for a disk that others use as
        // well.
        let memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"
        let parent = getenv("TMPDIR").map { String(cString: $0) } ?? memory
        var template = Array("\(parent)/hearth-tests-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { fatalError("no temporary folder: \(String(cString: strerror(errno)))") }
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        Self.removeAll(path)
    }

    private static func removeAll(_ path: String) {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { removeAll(path + "/" + name) }
            }
            closedir(folder)
        }
        remove(path)
    }

    /// - Returns: the file's path.
    @discardableResult
    package func write(_ name: String, _ string: String) -> String { write(name, Array(string.utf8)) }

    /// - Returns: the path of the file.
    @discardableResult
    package func write(_ name: String, _ bytes: [UInt8]) -> String {
        let file = path + "/" + name
        let descriptor = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard descriptor >= 0, Glibc.write(descriptor, bytes, bytes.count) == bytes.count else {
            fatalError("cannot write \(file): \(String(cString: strerror(errno)))")
        }
        close(descriptor)
        return file
    }

    /// The size of a file; nil when there is none.
    package func size(_ name: String) -> Int? {
        var information = stat()
        return stat(path + "/" + name, &information) == 0 ? Int(information.st_size) : nil
    }

    package func copy(_ name: String, to target: String) {
        let source = fopen(path + "/" + name, "r")
        guard let source, let sink = fopen(target, "w") else { fatalError("cannot copy \(name) to \(target)") }
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = fread(&buffer, 1, buffer.count, source)
            if count == 0 { break }
            precondition(fwrite(buffer, 1, count, sink) == count)
        }
        fclose(source)
        fclose(sink)
    }
}
