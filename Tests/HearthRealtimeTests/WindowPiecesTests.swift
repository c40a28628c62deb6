@testable import HearthConcurrency
import HearthModel
import HearthEngine
import HearthTestSupport
import HearthTree
import Synchronization
import Testing

import Glibc

@testable import HearthServer
@testable import HearthTreeStorage

/// Windows that are written piece by piece equal their nodes.
@Suite struct WindowPiecesTests {
    @Test(arguments: [UInt64](1...60)) func aWindowIsWrittenAsItsNode(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let database = try TreeDatabase(name: "t", store: MemoryStore(), clock: SystemClock())
        defer { database.close() }
        let isDone = Mutex(false)
        database.submit(
            TreeWrite(changes: [TreeChange(path: "a", node: random.node(depth: 4))], nowMilliseconds: 0)
        ) { _ in isDone.withLock { $0 = true } }
        while !isDone.withLock({ $0 }) { sched_yield() }
        let view = try database.view()
        defer { view.close() }
        for _ in 0..<20 {
            let query = random.query()
            let node = Node(children: try view.result(of: query, at: "a").children.map { ($0.key, $0.node) })
            for form in [TreeJSON.Form.plain, .export] {
                var wanted: [UInt8] = []
                TreeJSON.append(node, to: &wanted, form: form)
                var string: [UInt8] = []
                try view.writeJSON(of: query, at: "a", form: form) { piece in
                    string += piece
                    piece = []
                }
                #expect(String(decoding: string, as: UTF8.self) == String(decoding: wanted, as: UTF8.self), "\(seed)")
                var pieces: [UInt8] = []
                TreeJSON.write(node, form: form) { piece in
                    pieces += piece
                    piece = []
                }
                #expect(pieces == wanted, "\(seed)")
            }
            #expect(try view.hash(of: query, at: "a") == node.hash, "\(seed)")
            #expect(try view.node(of: query, at: "a", sizeBytesMax: 1 << 20) == node, "\(seed)")
            if !node.isEmpty { #expect(try view.node(of: query, at: "a", sizeBytesMax: 1) == nil, "\(seed)") }
        }
    }
}
