@testable import HearthLoadClient
import Foundation
import HearthModel
import HearthNetwork
import Testing

/// A certificate for localhost and 127.0.0.1, made by the openssl tool when it is there.
let localCertificate: TLSConfiguration? = {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("hearth-\(UUID().uuidString)")
    let openssl = URL(fileURLWithPath: "/usr/bin/openssl")
    guard FileManager.default.isExecutableFile(atPath: openssl.path) else { return nil }
    do {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let tool = Process()
        tool.executableURL = openssl
        tool.currentDirectoryURL = folder
        tool.arguments = [
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "certificate.pem", "-days",
            "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
        ]
        tool.standardError = FileHandle.nullDevice
        try tool.run()
        tool.waitUntilExit()
        guard tool.terminationStatus == 0 else { return nil }
    } catch { return nil }
    return TLSConfiguration(
        certificatePath: folder.appendingPathComponent("certificate.pem").path,
        keyPath: folder.appendingPathComponent("key.pem").path)
}()

@Suite(.enabled(if: localCertificate != nil, "there is no /usr/bin/openssl")) struct TLSTests {
    private func connectSecurely(_ server: NetworkServer) async throws -> HTTP2Client {
        try await connect(server) {
            $0.host = "localhost"
            $0.isSecure = true
            $0.trustedCertificatesPath = localCertificate?.certificatePath
        }
    }

    @Test func callsGoThroughTLS() async throws {
        try await withServer(tls: localCertificate, grpc: echoService) { server in
            let client = try await connectSecurely(server)
            for count in [0, 100, 5_000_000] {
                let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 ^ ($0 >> 8)) }
                let result = await call(client, "/p.S/Unary", messages: [message])
                #expect(result.status == .ok)
                #expect(result.messages == [message])
            }
        }
    }

    @Test func aPausedReaderGetsWhatOpenSSLHolds() async throws {
        let handler: @Sendable (HTTPExchange) -> Void = { exchange in
            #expect(exchange.head.isSecure)
            #expect(exchange.head.scheme == "https")
            nonisolated(unsafe) var received = 0
            exchange.onBody = { bytes in
                received += bytes.count
                exchange.pauseReading()
                exchange.loop.schedule(afterMilliseconds: 1) { exchange.resumeReading() }
            }
            exchange.onEnd = { exchange.respond(status: 200, headers: [], body: Array("\(received)".utf8)) }
        }
        try await withServer(tls: localCertificate, http: handler) { server in
            let client = try await connectSecurely(server)
            let answer = try await request(client, "POST", "/", body: [UInt8](repeating: 1, count: 300_000))
            #expect(answer.body == Array("300000".utf8))
        }
    }

    @Test func aRenewedCertificateNeedsNoRestart() async throws {
        try await withServer(tls: localCertificate, grpc: echoService) { server in
            let before = try await connectSecurely(server)
            try server.reloadCertificate()
            let after = try await connectSecurely(server)
            for client in [before, after] {
                #expect(await call(client, "/p.S/Unary", messages: [[1]]).status == .ok)
            }
        }
    }

    @Test func plaintextGetsAHintToUseTLS() async throws {
        try await withServer(tls: localCertificate) { server in
            let connection = try RawConnection(port: server.port)
            connection.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            let string = try await connection.readStringToEnd()
            #expect(string.hasPrefix("HTTP/1.1 400 "))
            #expect(string.contains("TLS"))
            #expect(server.statistics.connectionsRefused == 1)
        }
    }

    @Test func tlsOnAPlaintextPortGetsAnAlert() async throws {
        try await withServer { server in
            await #expect(throws: Status.self) { try await connectSecurely(server) }
            #expect(server.statistics.connectionsRefused == 1)
        }
    }

    @Test func aSlowHandshakeIsGivenUp() async throws {
        var limits = NetworkLimits()
        limits.tlsHandshakeMilliseconds = 40
        try await withServer(limits: limits, tls: localCertificate) { server in
            let silent = try RawConnection(port: server.port)
            let slow = try RawConnection(port: server.port)
            slow.send([0x16, 3, 1])
            #expect(try await silent.readToEnd().isEmpty)
            #expect(try await slow.readToEnd().isEmpty)
            #expect(server.statistics.timeouts == 2)
        }
    }

    @Test func unusableFilesAreNamed() throws {
        let server = NetworkServer(
            configuration: ServerConfiguration(
                tls: TLSConfiguration(certificatePath: "/nothing/here.pem", keyPath: "/nothing/key.pem")),
            http: ClosureHTTPHandler { _ in }, grpc: ClosureGRPCHandler { _ in })
        let status = #expect(throws: Status.self) { try server.start() }
        #expect(status?.message.contains("/nothing/here.pem") == true)
    }
}
