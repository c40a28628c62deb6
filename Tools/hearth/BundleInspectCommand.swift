import HearthToolSupport
import Glibc

/// `hearth bundle inspect`
enum BundleInspectCommand {
    static func run(_ path: String, asJSON: Bool) throws(ToolFailure) {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0 { throw ToolFailure(.data, "Cannot read \(path): \(String(cString: strerror(errno))).") }
        defer { if path != "-" { close(descriptor) } }
        var inspection = BundleInspection()
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            if count < 0 { throw ToolFailure(.data, "Cannot read \(path): \(String(cString: strerror(errno))).") }
            if count == 0 { break }
            inspection.feed(chunk[..<count])
            // Data after a broken element has no meaning.
            if inspection.isBroken { break }
        }
        inspection.finish()
        Output.line(asJSON ? inspection.json : inspection.string(path))
        if let problem = inspection.problems.first {
            throw ToolFailure(.failed, "A client would refuse \(path): \(problem.description)")
        }
    }
}

// MARK: Output for people

// MARK: JSON
