import CNetlink
import Glibc

/// The machine's addresses and routes, as strings that can be compared.
enum NetworkState {
    static func now() -> [String] { (addresses() + defaultRoutes()).sorted() }

    private static func addresses() -> [String] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var result: [String] = []
        var next = list
        while let entry = next {
            next = entry.pointee.ifa_next
            let flags = entry.pointee.ifa_flags
            guard flags & UInt32(IFF_UP) != 0, flags & UInt32(IFF_LOOPBACK) == 0,
                let address = entry.pointee.ifa_addr, let string = string(of: address), !string.hasPrefix("fe80:")
            else { continue }
            result.append("\(String(cString: entry.pointee.ifa_name)) \(string)")
        }
        return result
    }

    private static func string(of address: UnsafeMutablePointer<sockaddr>) -> String? {
        let length: Int
        switch Int32(address.pointee.sa_family) {
        case AF_INET: length = MemoryLayout<sockaddr_in>.size
        case AF_INET6: length = MemoryLayout<sockaddr_in6>.size
        default: return nil
        }
        var string = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, socklen_t(length), &string, socklen_t(string.count), nil, 0, NI_NUMERICHOST) == 0
        else {
            return nil
        }
        return String(decoding: string.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Source: proc(5), `/proc/net/route` and `/proc/net/ipv6_route`, without the counters.
    private static func defaultRoutes() -> [String] {
        var result: [String] = []
        for line in lines(of: "/proc/net/route") {
            let columns = line.split(whereSeparator: { $0 == "\t" || $0 == " " })
            if columns.count > 2, columns[1] == "00000000" { result.append("\(columns[0]) by \(columns[2])") }
        }
        for line in lines(of: "/proc/net/ipv6_route") {
            let columns = line.split(separator: " ")
            guard columns.count > 9, columns[1] == "00", columns[9] != "lo" else { continue }
            result.append("\(columns[9]) by \(columns[4])")
        }
        return result
    }

    private static func lines(of path: String) -> [Substring] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 8_192)
        while bytes.count < 1 << 20 {
            let count = fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    }
}
