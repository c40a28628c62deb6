import Glibc

/// A folder for one test, deleted with its contents.
package final class TemporaryFolder {
    package let path: String

    package init() {
        var template = Array("/tmp/hearth-test-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil)
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    private var names: [String] = []

    package func write(_ name: String, _ string: String) {
        names.append(name)
        let descriptor = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        precondition(descriptor >= 0)
        let bytes = Array(string.utf8)
        precondition(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
        close(descriptor)
    }
}
