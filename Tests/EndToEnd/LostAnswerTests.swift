import Foundation
import FoundationNetworking
import HearthFirestore
import Testing

/// Writes whose answers are lost are made once, and their callers get the outcome of that one time.
@Suite(.timeLimit(.minutes(5))) struct LostAnswerTests {
    enum Ending: CaseIterable { case connection, server, device }

    /// `n` of `c/d` at the server, asked past the network.
    private func stored(_ backend: Backend) async throws -> Int? {
        var request = URLRequest(
            url: backend.url("/v1/projects/\(Backend.project)/databases/(default)/documents/c/d"))
        request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
        let (data, _) = try await URLSession.shared.data(for: request)
        let document = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let fields = document?["fields"] as? [String: [String: String]]
        return fields?["n"]?["integerValue"].flatMap { Int($0) }
    }

    /// Waits until the server has made the given number of increments.
    private func awaitMade(_ count: Int, _ backend: Backend) async throws {
        try await Waiting.until("\(count) increments are made") { try await stored(backend) == count }
    }

    @Test(arguments: [false, true], Ending.allCases) func aWriteIsMadeOnce(isPersistent: Bool, ending: Ending)
        async throws
    {
        if ending == .device, !isPersistent { return }
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        try await device.db.document("c/d").setData(["n": 0])
        for round in 1...3 {
            backend.network.loseAnswers()
            let answers = Recorder<String>()
            for number in 0..<3 {
                device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))]) {
                    answers.append("\(number) \(($0 as NSError?)?.code ?? 0)")
                }
            }
            try await awaitMade(3 * round, backend)
            switch ending {
            case .connection: backend.network.breakConnections()
            case .server:
                backend.stop()
                backend.network.breakConnections()
                try await backend.restart()
            case .device:
                try await device.kill()
                backend.network.breakConnections()
            }
            try await device.db.waitForPendingWrites()
            if ending != .device { #expect(try await answers.first(3) == ["0 0", "1 0", "2 0"]) }
            #expect(try await stored(backend) == 3 * round)
        }
        let cached = try await device.db.document("c/d").getDocument(source: .cache)
        #expect(cached.get("n") as? Int == 9)
        await device.end()
    }

    @Test func theOutcomeIsThatOfTheFirstTime() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await device.db.document("c/d").setData(["n": 0])
        backend.network.loseAnswers()
        let answers = Recorder<Int>()
        device.db.document("c/d").updateData(["n": 1]) { answers.append(($0 as NSError?)?.code ?? 0) }
        try await awaitMade(1, backend)
        try await device.db.disableNetwork()
        backend.network.breakConnections()
        // A second time its condition would not hold.
        try await other.db.document("c/d").delete()
        try await device.db.enableNetwork()
        #expect(try await answers.first(1) == [0])
        #expect(try await device.db.document("c/d").getDocument(source: .server).exists == false)
        await device.end()
        await other.end()
    }

    /// With the power the newest writes may be lost, of which the server has made some: what is written instead is no repetition.
    @Test(arguments: [false, true]) func writesAfterALossOfPowerAreNotTakenForOthers(isEqual: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: true)
        let folder = try #require(device.folder)
        let copy = try TemporaryFolder()
        try await device.db.document("c/d").setData(["n": 0])
        try await device.db.terminate()
        try FileManager.default.copyItem(atPath: folder.path, toPath: "\(copy.path)/cache")
        try await device.restart()
        try await device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))])
        backend.network.loseAnswers()
        device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))], completion: nil)
        try await awaitMade(2, backend)
        try await device.kill {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
            }
            for name in try FileManager.default.contentsOfDirectory(atPath: "\(copy.path)/cache") {
                try FileManager.default.copyItem(
                    atPath: "\(copy.path)/cache/\(name)", toPath: "\(folder.path)/\(name)")
            }
        }
        backend.network.breakConnections()
        try await device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(isEqual ? 1 : 10))])
        #expect(try await stored(backend) == (isEqual ? 3 : 12))
        await device.end()
    }
}
