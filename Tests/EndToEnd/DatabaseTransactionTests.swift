import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct DatabaseTransactionTests {
    /// The stars example of the Firebase documentation, "Read and Write Data on Apple platforms".
    private func star(_ uid: String, _ data: MutableData) -> TransactionResult {
        guard var post = data.value as? [String: Any] else { return .success(withValue: data) }
        var stars = post["stars"] as? [String: Bool] ?? [:]
        var count = post["starCount"] as? Int ?? 0
        if stars[uid] == true {
            count -= 1
            stars[uid] = nil
        } else {
            count += 1
            stars[uid] = true
        }
        post["starCount"] = count
        post["stars"] = stars
        data.value = post
        return .success(withValue: data)
    }

    @Test func stars() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("post").setValue(["title": "x"])
        let (isCommitted, snapshot) = try await two.ref("post").runTransactionBlock { star("ada", $0) }
        #expect(isCommitted && snapshot.string == "{starCount: 1, stars: {ada: true}, title: x}")
        try await one.ref("post").runTransactionBlock { star("bob", $0) }
        try await two.ref("post").runTransactionBlock { star("ada", $0) }
        #expect(try await one.ref("post").getData().string == "{starCount: 1, stars: {bob: true}, title: x}")
        await one.end()
        await two.end()
    }

    @Test func nothingIsLostBetweenDevices() async throws {
        let backend = try Backend()
        let devices = try (0..<4).map { _ in try DatabaseDevice(backend) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for device in devices {
                for _ in 0..<10 {
                    group.addTask {
                        while true {
                            do {
                                let (isCommitted, _) = try await device.ref("count").runTransactionBlock { data in
                                    data.value = (data.value as? Int ?? 0) + 1
                                    return .success(withValue: data)
                                }
                                #expect(isCommitted)
                                return
                            } catch let error as NSError
                                where error.localizedDescription.contains("maxretry")
                            {}
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await devices[0].ref("count").getData().value as? Int == 40)
        for device in devices { await device.end() }
    }

    @Test func aborting() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        try await device.ref("x").setValue(5)
        let (isCommitted, snapshot) = try await device.ref("x").runTransactionBlock { data in
            data.value as? Int == nil ? .success(withValue: data) : .abort()
        }
        #expect(!isCommitted && snapshot.value as? Int == 5)
        #expect(try await device.ref("x").getData().value as? Int == 5)
        await device.end()
    }

    /// The server answers requests that were passed to the connection; the later write wins.
    @Test func overwrittenWhileOffline() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        try await device.waitUntil(connected: true)
        device.db.goOffline()
        let received = Recorder<String>()
        plainly {
            device.ref("x").runTransactionBlock({ data in
                data.value = 7
                return .success(withValue: data)
            }) { error, isCommitted, _ in received.append(error == nil ? "\(isCommitted)" : "error") }
            device.ref("x").setValue(1) { _, _ in received.append("set") }
        }
        #expect(try await device.ref("x").observeSingleEvent(of: .value).string == "1")
        device.db.goOnline()
        #expect(try await received.first(2).last == "set")
        #expect(try await device.ref("x").getData().string == "1")
        #expect(received.all.count == 2)
        await device.end()
    }

    @Test func withoutLocalEvents() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        try await device.ref("x").setValue(1)
        let received = device.ref("x").record(.value)
        try await received.recorder.latest { $0 == "x: 1" }
        let done = Recorder<Bool>()
        plainly {
            device.ref("x").runTransactionBlock(
                { data in
                    data.value = (data.value as? Int ?? 0) + 1
                    return .success(withValue: data)
                },
                andCompletionBlock: { _, isCommitted, _ in
                    done.append(isCommitted && received.recorder.all.contains("x: 2"))
                },
                withLocalEvents: false)
        }
        #expect(try await done.first(1) == [true], "the event comes before the completion")
        #expect(received.recorder.all == ["x: 1", "x: 2"])
        await device.end()
    }

    private static let depths = [[2, 1], [1, 2], [2, 0], [0, 2], [1, 0], [2, 2, 1], [2, 1, 0]]

    /// Each transaction adds one to `t/a/n`, at that path or above it, offline. Siblings that the device does not know
    /// are preserved, and each transaction is applied.
    @Test(arguments: ["", "t/a", "t/a/n"], depths) func aboveAndBelowOneAnother(
        known: String, depths: [Int]
    ) async throws {
        for (isEmpty, showsAtOnce) in [(true, true), (false, true), (false, false)] {
            let backend = try Backend()
            let (device, other) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
            if !isEmpty { try await other.ref("t").setValue(["a": ["n": 5], "z": 1] as [String: Any]) }
            let received = known.isEmpty ? nil : device.ref(known).record(.value)
            if let received { try await received.recorder.first(1) }
            try await device.ref("m").setValue(1)
            device.db.goOffline()
            let ended = Recorder<Bool>()
            for depth in depths {
                plainly {
                    device.ref(["t", "t/a", "t/a/n"][depth]).runTransactionBlock(
                        { data in
                            let number = depth == 2 ? data : data.childData(byAppendingPath: ["a/n", "n"][depth])
                            number.value = (number.value as? Int ?? 0) + 1
                            return .success(withValue: data)
                        }, andCompletionBlock: { _, isCommitted, _ in ended.append(isCommitted) },
                        withLocalEvents: showsAtOnce)
                }
            }
            device.db.goOnline()
            #expect(try await ended.first(depths.count).allSatisfy { $0 })
            let result = try await other.ref("t").getData().string
            #expect(result == (isEmpty ? "{a: {n: \(depths.count)}}" : "{a: {n: \(5 + depths.count)}, z: 1}"))
            received?.stop()
            await device.end()
            await other.end()
        }
    }
}
