import Foundation
import HearthApp
import HearthConcurrency
import HearthDatabase
import HearthModel
import HearthTree
import HearthWebSocket
import Synchronization

/// The entry point for fuzzing what a server of the Realtime Database says to the client: its messages, in the state that the earlier ones
/// have made. Nothing traps, and the client can be closed. A violated invariant traps.
package enum DatabaseClientFuzzing {
    private static let server = HostileServer()
    private static let queue = DispatchQueue(label: "fuzz")
    private static let count = Atomic<Int>(0)

    /// The server has one connection at a time.
    private static let exchange = Mutex(())

    /// Lines: the text frames that the server sends, before it closes.
    package static func fuzz(_ bytes: [UInt8]) { exchange.withLock { _ in run(bytes) } }

    private static func run(_ bytes: [UInt8]) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 60).filter { !namesHost($0) }
        let isServed = Awaited<Void>()
        server.serveNext { connection in
            defer { isServed.set(.success(())) }
            if serve(lines, to: connection) { connection.end() }
        }
        let name = "fuzz-\(count.add(1, ordering: .relaxed).newValue)"
        do { try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "p")) } catch {
            preconditionFailure("no app: \(error)")
        }
        guard let app = FirebaseApp.app(name: name) else { preconditionFailure("no app") }
        let database = Database.database(app: app, url: "http://127.0.0.1:\(server.port)?ns=n")
        database.callbackQueue = queue
        use(database)
        do throws(Status) {
            try isServed.wait()
            let isDeleted = Awaited<Void>()
            app.delete { _ in isDeleted.set(.success(())) }
            try isDeleted.wait()
        } catch { preconditionFailure("\(error)") }
    }

    /// Sends text frames behind the answer to the handshake.
    /// - Returns: false when there was no handshake.
    static func serve(_ lines: [ArraySlice<UInt8>], to connection: HostileServer.Connection) -> Bool {
        guard let head = connection.read(until: { $0.suffix(4).elementsEqual("\r\n\r\n".utf8) }),
            let key = key(head), let accept = try? WebSocketKey.accept(key)
        else { return false }
        connection.write(
            Array(
                ("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                    + "sec-websocket-accept: \(accept)\r\n\r\n").utf8))
        for line in lines { connection.write(frame(line)) }
        return true
    }

    /// What an app does before it gets an answer.
    private static func use(_ database: Database) {
        let root = database.reference()
        root.child("a").observe(.value) { _ in }
        root.child("list").queryOrdered(byChild: "n").queryLimited(toLast: 2).observe(.childAdded) { _ in }
        root.child("list").queryOrderedByKey().queryStarting(atValue: "b").observe(.childMoved) { _ in }
        root.child("list").observe(.childChanged) { _ in }
        root.child("a/b").setValue(["c": 1, "d": ServerValue.increment(NSNumber(value: 2))])
        root.child("list").updateChildValues(["x": ["n": 5], "y/n": NSNull()])
        root.child("a/t").onDisconnectSetValue(ServerValue.timestamp())
        root.child("a/n").runTransactionBlock { data in
            data.value = ((data.value as? Int) ?? 0) &+ 1
            return .success(withValue: data)
        }
        root.child("single").getData { _, _ in }
    }

    /// Whether a message may send the client to another machine, which the fuzzer must not talk to.
    private static func namesHost(_ line: ArraySlice<UInt8>) -> Bool {
        func names(_ value: JSONValue) -> Bool {
            switch value {
            case .string(let string): string == "r"
            case .array(let elements): elements.contains(where: names)
            case .object(let members): members.contains { $0.name == "h" || names($0.value) }
            case .null, .bool, .integer, .double: false
            }
        }
        do throws(TreeDataError) { return names(try TreeJSON.value(Array(line))) } catch {
            // Parts of it may be read.
            let string = String(decoding: line, as: UTF8.self)
            return string.contains("\"r\"") || string.contains("\"h\"") || string.contains("\\u")
        }
    }

    private static func key(_ head: [UInt8]) -> String? {
        for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n") {
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "sec-websocket-key" else { continue }
            return String(parts[1].drop { $0 == " " })
        }
        return nil
    }

    static func frame(_ line: ArraySlice<UInt8>) -> [UInt8] {
        let length =
            line.count < 126
            ? [UInt8(line.count)] : [126, UInt8(line.count >> 8 & 0xFF), UInt8(truncatingIfNeeded: line.count)]
        return [0x81] + length + line
    }
}
