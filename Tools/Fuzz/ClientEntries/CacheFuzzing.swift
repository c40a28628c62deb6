import Foundation
import HearthApp
import HearthCache
import HearthConcurrency
import HearthDatabase
import HearthFirestore
import HearthModel
import Synchronization

/// The entry points for fuzzing the rows of damaged cache files, and of their journals. A row that cannot be read is reported, or costs the
/// cache; nothing traps, and the client can be closed. Damaged pages are SQLite's matter.
///
/// The bytes are changes of a sound cache, one after the other:
///
///     0 · column (1) · row (1) · number (8)          a cell has another number
///     1 · column (1) · row (1) · count (1) · bytes   it has other bytes
///     2 · column (1) · row (1) · offset (1) · mask (1)  a byte of it is another one
///     3 · column (1) · row (1)                       the row is gone
///     4 · count (1) · bytes                          the journal has another record
///     5 · offset (2) · mask (1)                      a byte of the journal is another one
package enum CacheFuzzing {
    private static let folder = FileManager.default.temporaryDirectory.path + "/hearth-fuzz-\(getpid())"
    /// It closes connections.
    private static let server = HostileServer()
    private static let queue = DispatchQueue(label: "fuzz")
    private static let count = Atomic<Int>(0)
    private static let exchange = Mutex(())

    /// A cache of Firestore.
    package static func fuzzFirestore(_ bytes: [UInt8]) {
        exchange.withLock { _ in
            restore(documents)
            damage(Array(documents.keys), bytes)
            withApp { app in
                let firestore = open(app)
                use(firestore)
                end { done in firestore.terminate { _ in done() } }
            }
        }
    }

    /// A cache of the Realtime Database.
    package static func fuzzDatabase(_ bytes: [UInt8]) {
        exchange.withLock { _ in
            restore(nodes)
            damage(Array(nodes.keys), bytes)
            withApp { app in
                let database = openDatabase(app)
                database.goOffline()
                use(database)
            }
        }
    }

    private static func withApp(_ body: (FirebaseApp) -> Void) {
        let name = "cache-fuzz-\(count.add(1, ordering: .relaxed).newValue)"
        do { try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "p")) } catch {
            preconditionFailure("no app: \(error)")
        }
        guard let app = FirebaseApp.app(name: name) else { preconditionFailure("no app") }
        body(app)
        end { done in app.delete { _ in done() } }
    }

    /// Waits until `body` has called what it is given.
    private static func end(_ body: (@escaping @Sendable () -> Void) -> Void) {
        let isDone = Awaited<Void>()
        body { isDone.set(.success(())) }
        do throws(Status) { try isDone.wait() } catch { preconditionFailure("\(error)") }
    }

    // MARK: Files

    private typealias Files = [String: Data]

    private static func files() -> Files {
        var files: Files = [:]
        for path in FileManager.default.enumerator(atPath: folder)?.allObjects as? [String] ?? [] {
            files[path] = FileManager.default.contents(atPath: "\(folder)/\(path)")
        }
        return files
    }

    private static func restore(_ files: Files) {
        try? FileManager.default.removeItem(atPath: folder)
        for (path, data) in files {
            let url = URL(filePath: "\(folder)/\(path)")
            do {
                try FileManager.default.createDirectory(
                    at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
                try data.write(to: url)
            } catch { preconditionFailure("\(error)") }
        }
    }

    private static func damage(_ paths: [String], _ bytes: [UInt8]) {
        guard let path = paths.first(where: { $0.hasSuffix(".sqlite") }) else {
            preconditionFailure("no cache: \(paths)")
        }
        let url = URL(filePath: "\(folder)/\(path)")
        do throws(Status) {
            let database = try CacheDatabase(path: url.path)
            defer { database.close() }
            try change(
                database,
                CacheFile(folder: url.deletingLastPathComponent().path, name: url.lastPathComponent, lockName: "-"),
                bytes)
        } catch { preconditionFailure("\(error)") }
    }

    private static func change(
        _ database: CacheDatabase, _ file: CacheFile, _ bytes: [UInt8]
    ) throws(Status) {
        let columns = try database.strings(
            """
            SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_xinfo(t.name) c
            WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' ORDER BY 1
            """)
        var rest = bytes[...]
        func number(_ count: Int) -> UInt64 {
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count).reduce(0) { $0 << 8 | UInt64($1) }
        }
        func string() -> [UInt8] {
            let count = Int(number(1))
            defer { rest = rest.dropFirst(count) }
            return Array(rest.prefix(count))
        }
        while let kind = rest.popFirst() {
            if kind == 4 {
                append(string(), to: file)
                continue
            }
            if kind == 5 {
                flip(Int(number(2)), UInt8(truncatingIfNeeded: number(1)), of: file)
                continue
            }
            let column = columns[Int(number(1)) % columns.count].split(separator: ".")
            let (table, name) = (column[0], column[1])
            let count = try database.number("SELECT count(*) FROM \(table)")
            let row = Int(number(1)) % max(1, count)
            // Tables without numbers of rows have no other order.
            let cells = try database.strings("SELECT hex(\(name)) FROM \(table)")
            let condition = "hex(\(name)) = '\(row < cells.count ? cells[row] : "")'"
            var change = ""
            switch kind {
            case 0: change = "UPDATE \(table) SET \(name) = \(Int64(bitPattern: number(8))) WHERE \(condition)"
            case 1: change = "UPDATE \(table) SET \(name) = x'\(hexadecimal(string()))' WHERE \(condition)"
            case 2:
                let offset = 2 * Int(number(1))
                let mask = UInt8(truncatingIfNeeded: number(1))
                guard row < cells.count, offset + 2 <= cells[row].count else { continue }
                var digits = Array(cells[row])
                let byte = UInt8(String(digits[offset..<offset + 2]), radix: 16) ?? 0
                digits.replaceSubrange(offset..<offset + 2, with: hexadecimal([byte ^ mask]))
                change = "UPDATE \(table) SET \(name) = x'\(String(digits))' WHERE \(condition)"
            case 3: change = "DELETE FROM \(table) WHERE \(condition)"
            default: continue
            }
            // Constraints refuse some changes.
            do throws(Status) { try database.execute(change) } catch {}
        }
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static func append(_ contents: [UInt8], to file: CacheFile) {
        do throws(Status) {
            let (journal, _) = try WriteJournal.open(file, applied: 0) { _ in }
            try journal.append(contents) { _ in }
            journal.close()
        } catch { preconditionFailure("\(error)") }
    }

    private static func flip(_ offset: Int, _ mask: UInt8, of file: CacheFile) {
        guard var data = FileManager.default.contents(atPath: file.journal), offset < data.count else { return }
        data[offset] ^= mask
        do { try data.write(to: URL(filePath: file.journal)) } catch { preconditionFailure("\(error)") }
    }

    // MARK: Firestore

    private static func open(_ app: FirebaseApp) -> Firestore {
        let firestore = Firestore.firestore(app: app)
        let settings = FirestoreSettings()
        settings.host = "127.0.0.1:\(server.port)"
        settings.isSSLEnabled = false
        settings.dispatchQueue = queue
        settings.cacheSettings = PersistentCacheSettings(
            sizeBytes: 1_048_576, directory: URL(filePath: folder, directoryHint: .isDirectory))
        firestore.settings = settings
        firestore.disableNetwork()
        return firestore
    }

    /// A cache with documents, targets, a bundle, an index and writes that wait.
    private static let documents: Files = {
        restore([:])
        withApp { app in
            let firestore = open(app)
            configureIndex(firestore)
            end { done in firestore.loadBundle(bundle) { _, _ in done() } }
            use(firestore)
            write(firestore)
            end { done in firestore.terminate { _ in done() } }
        }
        return files()
    }()

    private static let bundle: Data = {
        let documents = "projects/p/databases/(default)/documents"
        let time = "2024-05-01T10:00:00Z"
        var elements: [String] = [
            """
            {"namedQuery":{"name":"q","bundledQuery":{"parent":"\(documents)","structuredQuery":{"from":[{"collectionId":"c"}],
            "where":{"fieldFilter":{"field":{"fieldPath":"n"},"op":"GREATER_THAN","value":{"integerValue":"1"}}},
            "orderBy":[{"field":{"fieldPath":"n"}}],"limit":3}},"readTime":"\(time)"}}
            """
        ]
        for number in 0..<6 {
            let name = "\(documents)/c/d\(number)"
            elements.append(
                #"{"documentMetadata":{"name":"\#(name)","readTime":"\#(time)","exists":true,"queries":["q"]}}"#)
            elements.append(
                """
                {"document":{"name":"\(name)","createTime":"\(time)","updateTime":"\(time)","fields":{
                "n":{"integerValue":"\(number)"},"s":{"stringValue":"é\(number)"},"t":{"timestampValue":"\(time)"},
                "a":{"arrayValue":{"values":[{"integerValue":"7"},{"nullValue":null}]}},"m":{"mapValue":{"fields":{
                "x":{"doubleValue":1.5},"r":{"referenceValue":"\(name)"},"b":{"bytesValue":"AAE="}}}}}}}
                """)
        }
        let content = elements.map { "\($0.utf8.count)\($0)" }.joined()
        let head =
            #"{"metadata":{"id":"b","createTime":"\#(time)","version":1,"totalDocuments":6,"totalBytes":"\#(content.utf8.count)"}}"#
        return Data("\(head.utf8.count)\(head)\(content)".utf8)
    }()

    private static func configureIndex(_ firestore: any IndexConfigurable) {
        let configuration = """
            {"indexes":[{"collectionGroup":"c","queryScope":"COLLECTION","fields":[
            {"fieldPath":"n","order":"ASCENDING"},{"fieldPath":"a","arrayConfig":"CONTAINS"}]}]}
            """
        end { done in firestore.setIndexConfiguration(configuration) { _ in done() } }
    }

    private static func write(_ firestore: Firestore) {
        let collection = firestore.collection("c")
        collection.document("d1").updateData(["n": FieldValue.increment(Int64(5)), "a": FieldValue.arrayUnion([8])])
        collection.document("e").setData(["n": 2, "t": FieldValue.serverTimestamp(), "m": ["k": [1.5, "é"]]])
        collection.document("d2").delete()
        firestore.collection("c/d1/sub").document("f").setData(["n": 3], merge: true)
    }

    private static func use(_ firestore: Firestore) {
        let collection = firestore.collection("c")
        let queries: [HearthFirestore.Query] = [
            collection, collection.whereField("n", isGreaterThan: 1).order(by: "n").limit(to: 3),
            collection.whereField("n", isGreaterThan: 1).whereField("a", arrayContains: 7).order(by: "n"),
            collection.order(by: "t", descending: true).limit(toLast: 2), firestore.collectionGroup("sub"),
        ]
        for query in queries {
            end { done in
                query.getDocuments(source: .cache) { found, _ in
                    for document in found?.documents ?? [] { _ = document.data(with: .estimate) }
                    done()
                }
            }
        }
        let listener = collection.order(by: "n").addSnapshotListener(includeMetadataChanges: true) { _, _ in }
        write(firestore)
        end { done in collection.document("d1").getDocument(source: .cache) { _, _ in done() } }
        end { done in
            firestore.getQuery(named: "q") { query in
                guard let query else { return done() }
                query.getDocuments(source: .cache) { _, _ in done() }
            }
        }
        configureIndex(firestore)
        end { done in firestore.loadBundle(bundle) { _, _ in done() } }
        listener.remove()
    }

    // MARK: The Realtime Database

    private static func openDatabase(_ app: FirebaseApp) -> Database {
        let database = Database.database(app: app, url: "http://127.0.0.1:\(server.port)?ns=n")
        database.callbackQueue = queue
        database.isPersistenceEnabled = true
        database.persistenceDirectory = URL(filePath: folder, directoryHint: .isDirectory)
        return database
    }

    /// A cache with the data of a location and of a query, and writes that wait.
    private static let nodes: Files = {
        restore([:])
        let greeting = #"{"t":"c","d":{"t":"h","d":{"ts":1700000000000,"v":"5","s":"x"}}}"#
        let data = [
            #"{"t":"d","d":{"a":"d","b":{"p":"a","d":{"b":{".value":1,".priority":2},"c":"é","d":{"e":2.5,"f":true}}}}}"#,
            #"{"t":"d","d":{"a":"d","b":{"p":"list","d":{"x":{"n":1},"y":{"n":2}},"t":1}}}"#,
        ]
        let replies = (1...9).map { #"{"t":"d","d":{"r":\#($0),"b":{"s":"ok","d":{}}}}"# }
        let answers = (data + replies).map { Array($0.utf8)[...] }
        server.serveNext { connection in
            guard DatabaseClientFuzzing.serve([Array(greeting.utf8)[...]], to: connection) else { return }
            // Behind all that the client says: so also behind its last request. The client closes.
            _ = connection.read { said in
                if !said.isEmpty { for answer in answers { connection.write(DatabaseClientFuzzing.frame(answer)) } }
                return false
            }
        }
        withApp { app in
            let database = openDatabase(app)
            use(database)
            end { done in _ = database.reference().child("a/c").observe(.value) { if $0.exists() { done() } } }
        }
        return files()
    }()

    private static func use(_ database: Database) {
        let root = database.reference()
        root.child("a").observe(.value) { _ in }
        root.child("list").queryOrdered(byChild: "n").queryLimited(toLast: 2).observe(.childAdded) { _ in }
        root.child("list").observe(.childChanged) { _ in }
        root.child("a/b").setValue(["c": 1, "d": ServerValue.increment(NSNumber(value: 2))])
        root.child("list").updateChildValues(["x": ["n": 5], "y/n": NSNull()])
        root.child("a/t").setValue(ServerValue.timestamp(), andPriority: "p")
        root.child("a").keepSynced(true)
        root.child("a/n").runTransactionBlock { data in
            data.value = ((data.value as? Int) ?? 0) &+ 1
            return .success(withValue: data)
        }
    }
}

/// Firestore's call is deprecated, and has no successor that makes an index of a few documents.
private protocol IndexConfigurable {
    func setIndexConfiguration(_ configuration: String, completion: (((any Error)?) -> Void)?)
}

extension Firestore: IndexConfigurable {}
