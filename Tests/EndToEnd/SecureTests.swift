import Foundation
import HearthDatabase
import HearthFirestore
import HearthTestCertificates
import HearthTestSupport
import Testing

/// Both products over TLS with the system's trusted authorities: OpenSSL reads them from a file that an environment
/// variable names.
@Suite(.timeLimit(.minutes(Patience.minutes)), .serialized) struct SecureTests {
    init() {
        setenv("SSL_CERT_FILE", Certificates.shared.authority.certificatePath, 1)
    }

    @Test func theRealtimeDatabase() async throws {
        let backend = try Backend(tls: Certificates.shared.server.server)
        let one = try DatabaseDevice(backend, base: "https://localhost")
        let two = try DatabaseDevice(backend, base: "https://127.0.0.1")
        let long = String(repeating: "long ", count: 100_000)
        try await one.ref("a").setValue(["x": 1, "y": long] as [String: Any])
        let received = two.ref("a/x").record(.value)
        try await received.recorder.latest { $0 == "x: 1" }
        #expect(try await two.ref("a/y").getData().value as? String == long)
        backend.network.cut()
        try await two.waitUntil(connected: false)
        backend.network.restore()
        try await one.ref("a/x").setValue(2)
        try await received.recorder.latest { $0 == "x: 2" }
        received.stop()
        await one.end()
        await two.end()
    }

    @Test func aServerWithAnotherNameIsNotTrusted() async throws {
        let backend = try Backend(tls: Certificates.shared.otherName.server)
        let device = try DatabaseDevice(backend, base: "https://localhost")
        let connected = device.ref(".info/connected").record(.value)
        let answers = Recorder<String>()
        plainly { device.ref("a").setValue(1) { error, _ in answers.append("\((error as NSError?)?.code ?? 0)") } }
        // The client has given up two connections, whatever it has received on them.
        try await Waiting.until("three attempts") { backend.network.connectionsAccepted >= 3 }
        #expect(connected.recorder.all == ["connected: false"])
        #expect(answers.all.isEmpty, "the write was confirmed")
        connected.stop()
        await device.end()
        #expect(try await answers.first(1) == ["2"], "the app was deleted")
    }

    @Test func firestore() async throws {
        let backend = try Backend(tls: Certificates.shared.server.server)
        let one = try Device(backend, secureHost: "localhost")
        let two = try Device(backend, secureHost: "127.0.0.1")
        try await one.db.document("c/d").setData(["x": 1])
        let document = try await two.db.document("c/d").getDocument(source: .server)
        #expect(document.data()?["x"] as? Int == 1)
        // Calls that are not streams trust the same authorities.
        #expect(try await one.db.collection("c").count.getAggregation(source: .server).count == 1)
        await one.end()
        await two.end()
    }

    /// The program's own authorities and certificate, while the environment names others.
    @Test func settingsOfTheProgram() async throws {
        setenv("SSL_CERT_FILE", Certificates.shared.stranger.certificatePath, 1)
        let files = Certificates.shared
        let tls = TLSSettings(
            authorities: URL(fileURLWithPath: files.authority.certificatePath),
            clientCertificate: URL(fileURLWithPath: files.client.certificatePath),
            clientKey: URL(fileURLWithPath: files.encryptedClientKeyPath), clientKeyPassword: "secret")
        let backend = try Backend(tls: files.server.server)
        let device = try Device(backend, secureHost: "localhost", tls: tls)
        try await device.db.document("c/d").setData(["x": 1])
        #expect(try await device.db.collection("c").count.getAggregation(source: .server).count == 1)
        _ = try await device.db.runTransaction { transaction, _ in
            transaction.updateData(["x": 2], forDocument: device.db.document("c/d"))
        }
        #expect(try await device.db.document("c/d").getDocument(source: .server).get("x") as? Int == 2)
        await #expect("the server has no such bundle, but it is trusted") {
            try await device.db.loadBundle(from: URL(string: "https://localhost:\(backend.network.port)/bundles/none")!)
        } throws: { FirestoreErrorCode.notFound ~= $0 }
        await device.end()
        let database = try DatabaseDevice(backend, base: "https://localhost", tls: tls)
        try await database.ref("a").setValue(1)
        await database.end()
        // Without own authorities the environment's are used.
        let other = try Device(backend, secureHost: "localhost")
        await #expect {
            try await other.db.collection("c").count.getAggregation(source: .server)
        } throws: { FirestoreErrorCode.unavailable ~= $0 }
        await other.end()
    }
}
