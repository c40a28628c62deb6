import Glibc

/// The environment variables of the process.
enum Environment {
    static var all: [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let string = entry.pointee {
            let pair = String(cString: string)
            if let equals = pair.firstIndex(of: "=") {
                variables[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
            }
            entry += 1
        }
        return variables
    }
}
