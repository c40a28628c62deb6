import Foundation
import Glibc
import HearthDatabase
import HearthFirestore

/// Writes as fast as it can, offline, and prints the name of each write after its call has returned.
struct WritingProgram {
    let product: String
    let app: String
    /// The first part of the names.
    let run: String
    let threads: Int
    let folder: String
    /// The writes of each thread, after which the program ends; nil: until it is killed.
    let count: Int?

    func start() {
        FirebaseApp.configure(name: app, options: FirebaseOptions(projectID: "demo-end-to-end"))
        let app = FirebaseApp.app(name: app)!
        let write = product == "firestore" ? firestore(app) : database(app)
        let group = DispatchGroup()
        for thread in 0..<threads {
            group.enter()
            Thread.detachNewThread {
                var number = 0
                while count.map({ number < $0 }) ?? true {
                    let name = "\(self.run)-\(thread)-\(number)"
                    write(name)
                    // One line a call, without a buffer of the program: what was printed had returned.
                    let line = Array("\(name)\n".utf8)
                    if Glibc.write(1, line, line.count) != line.count { exit(74) }
                    number += 1
                }
                group.leave()
            }
        }
        group.wait()
        exit(0)
    }

    private func firestore(_ app: FirebaseApp) -> @Sendable (String) -> Void {
        let firestore = Firestore.firestore(app: app)
        let settings = FirestoreSettings()
        settings.host = "127.0.0.1:1"
        settings.isSSLEnabled = false
        settings.cacheSettings = PersistentCacheSettings(
            sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited), directory: URL(fileURLWithPath: folder))
        firestore.settings = settings
        firestore.disableNetwork()
        return { name in
            switch name.utf8.last.map({ $0 % 3 }) {
            case 0: firestore.document("w/\(name)").setData(["n": name], completion: nil)
            case 1: firestore.document("w/\(name)").setData(["n": name], merge: true, completion: nil)
            default:
                let batch = firestore.batch()
                batch.setData(["n": name], forDocument: firestore.document("w/\(name)"))
                batch.setData(["n": name], forDocument: firestore.document("twins/\(name)"))
                batch.commit(completion: nil)
            }
        }
    }

    private func database(_ app: FirebaseApp) -> @Sendable (String) -> Void {
        let database = Database.database(app: app, url: "http://127.0.0.1:1?ns=shop")
        database.isPersistenceEnabled = true
        database.persistenceDirectory = URL(fileURLWithPath: folder)
        database.goOffline()
        let root = database.reference()
        return { name in
            switch name.utf8.last.map({ $0 % 2 }) {
            case 0: root.child("w/\(name)").setValue(name)
            default: root.updateChildValues(["w/\(name)": name, "twins/\(name)": name])
            }
        }
    }
}
