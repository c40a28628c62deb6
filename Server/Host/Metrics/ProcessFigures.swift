import Glibc

/// Figures of a process from the system.
package enum ProcessFigures {
    /// Resident memory of this process; nil where `/proc` does not exist.
    package static var residentBytes: Int? { residentBytes(process: "self") }

    /// - Parameter process: a process number, or `self`.
    package static func residentBytes(process: String) -> Int? {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(process)/statm") } catch { return nil }
        guard let string else { return nil }
        let fields = string.split(separator: UInt8(ascii: " "))
        guard fields.count > 1, let pages = Int(String(decoding: fields[1], as: UTF8.self)) else { return nil }
        return pages * sysconf(Int32(_SC_PAGESIZE))
    }

    /// User and system time of a process; nil when it does not exist.
    package static func processorSeconds(process: String) -> Double? {
        let string: [UInt8]?
        do { string = try TextFile.read("/proc/\(process)/stat") } catch { return nil }
        // The second field is the program's name in parentheses, which may contain any characters.
        guard let string, let end = string.lastIndex(of: UInt8(ascii: ")")) else { return nil }
        let fields = string[(end + 1)...].split(separator: UInt8(ascii: " "))
        guard fields.count > 12, let user = Int(String(decoding: fields[11], as: UTF8.self)),
            let system = Int(String(decoding: fields[12], as: UTF8.self))
        else { return nil }
        return Double(user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    static var cpuSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
