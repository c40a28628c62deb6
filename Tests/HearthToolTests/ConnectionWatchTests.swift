import Glibc
import HearthConcurrency
import HearthLoadClient
import HearthNetwork
import HearthTestSupport
import HearthToolSupport
import Testing

@testable import hearth

@Suite struct ConnectionWatchTests {
    /// A port that takes connections, and never answers.
    private static func silentPort() throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && listen(descriptor, 4) == 0
                    && getsockname(descriptor, $0, &length) == 0
            }
        }
        try #require(isListening)
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    @Test(.timeLimit(.minutes(Patience.minutes)))
    func aConnectionToASilentServerIsClosed() throws {
        let (descriptor, port) = try Self.silentPort()
        defer { close(descriptor) }
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        let connected = Awaited<HTTP2Client>()
        HTTP2Client.connect(HTTP2Client.Configuration(host: "127.0.0.1", port: port), on: loop) { connected.set($0) }
        let client = try connected.wait()
        let failed = Awaited<Void>()
        loop.execute {
            let stream = client.open(method: "GET", path: "/", hasBody: false)
            stream.onFailure = { failed.set(.failure($0)) }
        }
        ConnectionWatch(client, pauseMilliseconds: 10).start()
        #expect(throws: (any Error).self) { try failed.wait() }
    }
}
