/// The part of a peer's address that identifies one host.
@usableFromInline package enum PeerAddress {
    /// `192.0.2.1` of `192.0.2.1:5000`, `2001:db8:0:1` of `[2001:db8:0:1::5]:5000`; other strings as they are.
    @usableFromInline package static func network(of address: String) -> String {
        guard address.utf8.first == UInt8(ascii: "[") else {
            guard let colon = address.utf8.lastIndex(of: UInt8(ascii: ":")) else { return address }
            return String(address[..<colon])
        }
        let bytes = Array(address.utf8)
        let end = bytes.firstIndex(of: UInt8(ascii: "]")) ?? bytes.endIndex
        let host = String(decoding: bytes[1..<end], as: UTF8.self)
        if host.lowercased().hasPrefix("::ffff:") { return String(host.dropFirst("::ffff:".count)) }
        let halves = host.split(separator: "%", omittingEmptySubsequences: false)[0]
            .split(separator: "::", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.split(separator: ":").map(String.init) }
        var groups = halves[0]
        if halves.count == 2 {
            groups += Array(repeating: "0", count: max(0, 8 - groups.count - halves[1].count)) + halves[1]
        }
        return groups.prefix(4).joined(separator: ":")
    }
}
