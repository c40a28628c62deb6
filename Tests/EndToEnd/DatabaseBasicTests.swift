import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

/// The Realtime Database: programs and a server over real sockets.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct DatabaseBasicTests {
    @Test func writesAreReadElsewhere() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("users/ada").setValue(["name": "Ada", "born": 1815, "tags": ["x", "y"]] as [String: Any])
        #expect(try await two.ref("users/ada").getData().string == "{born: 1815, name: Ada, tags: [x, y]}")
        try await two.ref("users/ada").updateChildValues(["born": 1816, "tags/0": NSNull(), "a/b": true])
        #expect(
            try await one.ref("users").getData().string
                == "{ada: {a: {b: true}, born: 1816, name: Ada, tags: [null, y]}}")
        try await one.ref("users/ada/a").removeValue()
        #expect(try await two.ref("users/ada/a").getData().exists() == false)
        try await one.ref("users/ada").setPriority(3)
        #expect(try await two.ref("users/ada").getData().priority as? Int == 3)
        try await one.ref("users/ada").setValue("x", andPriority: "p")
        let snapshot = try await two.ref("users/ada").getData()
        #expect(snapshot.string == "x" && snapshot.priority as? String == "p" && snapshot.key == "ada")
        #expect(try await two.ref("nothing").getData().value is NSNull)
        await one.end()
        await two.end()
    }

    @Test func completionsComeAfterTheServer() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        let received = Recorder<String>()
        let ref = device.ref("a")
        plainly {
            ref.observe(.value) { received.append("value \($0.string)") }
            ref.setValue(1) { error, ref in received.append("done \(error == nil) \(ref.key ?? "")") }
        }
        try await received.latest { $0 == "done true a" }
        #expect(received.all.filter { $0 != "value null" } == ["value 1", "done true a"])
        await device.end()
    }

    @Test func observersReceiveOthersWrites() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("list").setValue(["a": 1, "b": 2])
        let children = two.ref("list").record(.childAdded, .childChanged, .childRemoved, .childMoved)
        let value = two.ref("list").record(.value)
        #expect(try await children.recorder.first(2) == ["+a: 1", "+b: 2 <a"])
        try await value.recorder.latest { $0 == "list: {a: 1, b: 2}" }
        try await one.ref("list/c").setValue(3)
        try await one.ref("list/a").setValue(10)
        try await one.ref("list/b").removeValue()
        try await one.ref("list").updateChildValues(["d": 4, "c": NSNull()])
        try await value.recorder.latest { $0 == "list: {a: 10, d: 4}" }
        #expect(
            try await children.recorder.first(7)
                == ["+a: 1", "+b: 2 <a", "+c: 3 <b", "~a: 10", "-b: 2", "-c: 3", "+d: 4 <a"])
        try await one.ref("list").removeValue()
        try await value.recorder.latest { $0 == "list: null" }
        value.stop()
        children.stop()
        let count = value.recorder.all.count
        try await one.ref("list").setValue(1)
        #expect(try await two.ref("list").getData().string == "1")
        #expect(value.recorder.all.count == count && children.recorder.all.count == 9)
        await one.end()
        await two.end()
    }

    /// The fan-out example of the Firebase documentation, "Read and Write Data on Apple platforms".
    @Test func fanOut() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let feed = two.ref("user-posts/eva").queryLimited(toLast: 2).record(.childAdded, .childRemoved)
        var keys: [String] = []
        for title in ["first", "second", "third"] {
            let key = try #require(one.ref("posts").childByAutoId().key)
            keys.append(key)
            let post = ["uid": "eva", "title": title]
            try await one.ref().updateChildValues(["/posts/\(key)": post, "/user-posts/eva/\(key)/": post])
            // Changes that cancel out before the observer is added are not reported.
            try await feed.recorder.first { $0.contains(title) }
        }
        #expect(keys == keys.sorted())
        let shown = "{title: first, uid: eva}"
        try await feed.recorder.first { $0 == "-\(keys[0]): \(shown)" }
        #expect(try await two.ref("posts/\(keys[0])").getData().string == shown)
        await one.end()
        await two.end()
    }

    @Test func windowsFollowTheData() async throws {
        let backend = try Backend(
            databaseRules: #"{"rules": {".read": true, ".write": true, "scores": {".indexOn": ["points"]}}}"#)
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await one.ref("scores").setValue(["ann": ["points": 7], "bob": ["points": 9], "cy": ["points": 1]])
        let top = two.ref("scores").queryOrdered(byChild: "points").queryLimited(toLast: 2)
        let received = top.record(.value)
        let moved = top.record(.childMoved, .childAdded, .childRemoved)
        try await received.recorder.latest { $0 == "scores: {ann: {points: 7}, bob: {points: 9}}" }
        try await one.ref("scores/cy/points").setValue(8)
        try await received.recorder.latest { $0 == "scores: {bob: {points: 9}, cy: {points: 8}}" }
        try await one.ref("scores/cy/points").setValue(10)
        try await received.recorder.latest { $0 == "scores: {bob: {points: 9}, cy: {points: 10}}" }
        try await moved.recorder.first { $0 == ">cy: {points: 10} <bob" }
        try await one.ref("scores/cy").removeValue()
        try await received.recorder.latest { $0 == "scores: {ann: {points: 7}, bob: {points: 9}}" }
        #expect(
            try await two.ref("scores").queryOrdered(byChild: "points").queryStarting(atValue: 8).getData().string
                == "{bob: {points: 9}}")
        #expect(
            try await two.ref("scores").queryOrderedByKey().queryEnding(atValue: "b").getData().string
                == "{ann: {points: 7}}")
        await one.end()
        await two.end()
    }

    @Test func serverValues() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        let before = Date().timeIntervalSince1970 * 1000
        try await device.ref("x").setValue(["at": ServerValue.timestamp(), "n": ServerValue.increment(2)])
        try await device.ref("x").updateChildValues(["n": ServerValue.increment(0.5)])
        let value = try #require(try await device.ref("x").getData().value as? [String: Any])
        let at = try #require(value["at"] as? Double)
        #expect(at >= before.rounded(.down) && at <= Date().timeIntervalSince1970 * 1000)
        #expect(value["n"] as? Double == 2.5)
        let received = device.ref("count").record(.value)
        #expect(try await received.recorder.first(1) == ["count: null"])
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { try await device.ref("count").setValue(ServerValue.increment(1)) }
            }
            try await group.waitForAll()
        }
        try await received.recorder.latest { $0 == "count: 20" }
        let counts = received.recorder.all.map { Int($0.dropFirst("count: ".count)) ?? 0 }
        #expect(counts == counts.sorted(), "the count never decreases, and no increment is applied twice")
        let offset = device.ref(".info/serverTimeOffset").record(.value)
        try await offset.recorder.first { $0.hasPrefix("serverTimeOffset: ") }
        await device.end()
    }

    @Test func largeAndStrangeData() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let string = String(repeating: "x€😀\"\\\n", count: 60_000)
        try await one.ref("big/string").setValue(string)
        #expect(try await two.ref("big/string").getData().value as? String == string)
        var children: [String: Any] = [:]
        for index in 0..<5_000 { children["k\(index)"] = ["n": index, "t": "ä\(index)"] as [String: Any] }
        try await one.ref("big/list").setValue(children)
        let snapshot = try await two.ref("big/list").getData()
        #expect(snapshot.childrenCount == 5_000)
        #expect(snapshot.childSnapshot(forPath: "k4999/t").value as? String == "ä4999")
        let received = two.ref("big/list").record(.childChanged)
        // A write before the data has arrived is reported as an addition.
        _ = try await two.ref("big/list").record(.value).recorder.first(1)
        try await two.ref("big/list/k7/n").setValue(-7)
        try await received.recorder.latest { $0 == "~k7: {n: -7, t: ä7} <k6999" || $0.hasPrefix("~k7: {n: -7, t: ä7}") }
        // Two keys that Swift's strings treat as equal.
        try await one.ref("strange").updateChildValues(["\u{e4}": 1, "b c+%": 3])
        try await one.ref("strange").child("a\u{308}").setValue(2)
        let strange = try await two.ref("strange").getData()
        #expect(strange.childrenCount == 3)
        #expect(strange.childSnapshot(forPath: "\u{e4}").value as? Int == 1)
        #expect(strange.childSnapshot(forPath: "a\u{308}").value as? Int == 2)
        #expect(try await two.ref("strange/b c+%").getData().value as? Int == 3)
        await one.end()
        await two.end()
    }

    @Test func codable() async throws {
        struct Line: Codable, Equatable {
            var string: String
            var likes: [String: Bool]?
            @ServerTimestamp var at: Date?
        }
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        let done = Recorder<Bool>()
        try device.ref("line").setValue(from: Line(string: "hi", likes: ["ada": true])) { done.append($0 == nil) }
        #expect(try await done.first(1) == [true])
        let line = try await device.ref("line").getData().data(as: Line.self)
        #expect(line.string == "hi" && line.likes == ["ada": true])
        #expect(abs(try #require(line.at).timeIntervalSinceNow) < 60)
        #expect(try await device.ref("nothing").getData().data(as: Line?.self) == nil)
        await device.end()
    }

    @Test func singleEventsAndKeys() async throws {
        let backend = try Backend()
        let device = try DatabaseDevice(backend)
        try await device.ref("x").setValue(["a": 1, "b": 2])
        let (snapshot, previous) = await device.ref("x").queryLimited(toLast: 1)
            .observeSingleEventAndPreviousSiblingKey(of: .childAdded)
        #expect(snapshot.key == "b" && previous == nil)
        #expect(try await device.ref("x/a").observeSingleEvent(of: .value).string == "1")
        await device.end()
    }

    @Test func namespacesAreApart() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend, namespace: "other"))
        try await one.ref("x").setValue(1)
        #expect(try await two.ref("x").getData().exists() == false)
        await one.end()
        await two.end()
    }
}
