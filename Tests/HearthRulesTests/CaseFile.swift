import Glibc

/// The lines of a table of cases in this folder.
enum CaseFile {
    struct Line {
        var number: Int
        var string: String
    }

    static func lines(_ name: String, of file: String = #filePath) throws -> [Line] {
        let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        let path = folder + "/cases/" + name
        guard let handle = fopen(path, "r") else { throw Missing(path: path) }
        defer { fclose(handle) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&buffer, 1, buffer.count, handle)
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated().map { Line(number: $0.offset + 1, string: String($0.element)) }
    }

    struct Missing: Error {
        var path: String
    }
}
