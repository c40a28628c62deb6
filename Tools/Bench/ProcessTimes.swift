import CLoad
import Glibc
import HearthHost

/// CPU time, user and system.
enum ProcessTimes {
    /// Of this process, all threads.
    static var own: Double { load_process_seconds() }

    /// Of programs that this process has started and that have ended.
    static var endedChildren: Double { load_children_seconds() }

    /// Of a process and of those that it has started, such as nginx's workers, also of those that have ended.
    static func seconds(family id: pid_t) -> Double { family(id).reduce(0) { $0 + (seconds($1) ?? 0) } }

    private static func family(_ id: pid_t) -> [pid_t] {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(id)/task/\(id)/children") } catch { return [id] }
        let children = String(decoding: string ?? [], as: UTF8.self).split(separator: " ").compactMap { pid_t($0) }
        return [id] + children.flatMap { family($0) }
    }

    private static func seconds(_ id: pid_t) -> Double? {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(id)/stat") } catch { return nil }
        // The second field is the program's name in parentheses, which may contain any characters.
        guard let string, let end = string.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = string[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 14 else { return nil }
        // utime, stime, and both of children that were waited for.
        let ticks = fields[11...14].reduce(0) { $0 + (Int(String(decoding: $1, as: UTF8.self)) ?? 0) }
        return Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The process on this machine that listens on a port; nil when it cannot be found, as without the right to look at it.
    static func listener(port: Int) -> pid_t? {
        let sockets = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap { listeningSockets($0, port: port) }
        guard !sockets.isEmpty else { return nil }
        return names(in: "/proc").compactMap { pid_t($0) }.first { id in
            names(in: "/proc/\(id)/fd").contains { sockets.contains(target(of: "/proc/\(id)/fd/\($0)")) }
        }
    }

    /// What the files of its descriptors link to: `socket:[4711]`
    private static func listeningSockets(_ path: String, port: Int) -> [String] {
        let string: [UInt8]?
        do { string = try TextFile.read(path) } catch { return [] }
        let hexadecimal = String(port, radix: 16, uppercase: true)
        let end = ":" + String(repeating: "0", count: max(0, 4 - hexadecimal.count)) + hexadecimal
        return String(decoding: string ?? [], as: UTF8.self).split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            // The state 0A is LISTEN.
            guard fields.count > 9, fields[1].hasSuffix(end), fields[3] == "0A" else { return nil }
            return "socket:[\(fields[9])]"
        }
    }

    private static func names(in path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                    pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }

    private static func target(of path: String) -> String {
        var bytes = [CChar](repeating: 0, count: 64)
        let count = readlink(path, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
