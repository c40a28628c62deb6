import Foundation
import Glibc
import HearthDatabase
import HearthFirestore
import HearthTestSupport

/// Connects, transfers and closes, and ends at a moment that the seed determines, in one of the ways in which programs
/// end.
struct EndingProgram {
    let seed: UInt64
    let host: String
    let isSecure: Bool
    let folder: String

    private final class Clients {
        var app: FirebaseApp
        let firestore: Firestore
        let database: Database

        init(_ name: String, _ program: EndingProgram, isPersistent: Bool) {
            FirebaseApp.configure(name: name, options: FirebaseOptions(projectID: "demo-end-to-end"))
            app = FirebaseApp.app(name: name)!
            firestore = Firestore.firestore(app: app)
            let settings = FirestoreSettings()
            settings.host = program.host
            settings.isSSLEnabled = program.isSecure
            settings.dispatchQueue = DispatchQueue(label: "listeners.\(name)")
            settings.cacheSettings =
                isPersistent
                ? PersistentCacheSettings(
                    sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited),
                    directory: URL(fileURLWithPath: program.folder))
                : MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
            firestore.settings = settings
            database = Database.database(app: app, url: "http\(program.isSecure ? "s" : "")://\(program.host)?ns=shop")
            database.callbackQueue = DispatchQueue(label: "callbacks.\(name)")
            database.isPersistenceEnabled = isPersistent
            database.persistenceDirectory = URL(fileURLWithPath: program.folder)
        }
    }

    func start() {
        // The parent may have blocked signals.
        var none = sigset_t()
        sigemptyset(&none)
        sigprocmask(SIG_SETMASK, &none, nil)
        signal(SIGTERM, SIG_DFL)
        var random = SeededGenerator(seed: seed)
        // Half of the programs end while they connect: then most of what they use is set up.
        if seed % 2 == 0 {
            let clients = (0..<3).map { Clients("app-\($0)", self, isPersistent: false) }
            for client in clients {
                client.firestore.collection("c").addSnapshotListener { _, _ in }
                client.database.reference(withPath: "c").setValue(1)
            }
            usleep(UInt32(random.below(60_000)))
            return end(random.below(3))
        }
        var clients: [Clients] = []
        var number = 0
        let answered = DispatchSemaphore(value: 0)
        for _ in 0..<random.below(24) {
            if clients.isEmpty || random.isOne(in: 6) {
                number += 1
                clients.append(Clients("app-\(number)", self, isPersistent: random.chance(50)))
            }
            let index = random.below(clients.count)
            let (firestore, database) = (clients[index].firestore, clients[index].database)
            let reference = database.reference(withPath: "c/\(random.below(4))")
            switch random.below(14) {
            case 0, 1:
                firestore.document("c/\(random.below(4))").setData(["n": number]) { _ in answered.signal() }
            case 2: firestore.collection("c").addSnapshotListener { _, _ in answered.signal() }
            case 3: firestore.collection("c").getDocuments(source: .default) { _, _ in answered.signal() }
            case 4: firestore.disableNetwork()
            case 5: firestore.enableNetwork()
            case 6, 7: reference.setValue(number) { _, _ in answered.signal() }
            case 8: reference.observe(.value) { _ in answered.signal() }
            case 9: reference.onDisconnectSetValue(0)
            case 10: database.goOffline()
            case 11: database.goOnline()
            case 12:
                firestore.terminate()
                clients.remove(at: index)
            default:
                clients[index].app.delete { _ in answered.signal() }
                clients.remove(at: index)
            }
            // A step of the network, or a short time, or no time.
            switch random.below(4) {
            case 0: _ = answered.wait(timeout: .now() + .milliseconds(random.below(50)))
            case 1: usleep(UInt32(random.below(4000)))
            default: break
            }
        }
        usleep(UInt32(random.below(3) * random.below(6000)))
        end(random.below(4))
    }

    private func end(_ way: Int) {
        switch way {
        case 0: exit(0)
        // The end of `main`.
        case 1: return
        case 2:
            Thread.detachNewThread { exit(0) }
            while true { pause() }
        default:
            kill(getpid(), SIGTERM)
            while true { pause() }
        }
    }
}
