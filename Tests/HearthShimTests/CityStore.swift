// sample: apple-firestore
import FirebaseCore
import FirebaseFirestore

struct City: Codable {
    @DocumentID var id: String?
    var name: String
    var population: Int
    @ServerTimestamp var changed: Timestamp?
}

final class CityStore {
    private let db: Firestore
    private var listener: ListenerRegistration?

    init(db: Firestore = Firestore.firestore()) { self.db = db }

    func add(_ city: City) throws {
        _ = try db.collection("cities").addDocument(from: city)
    }

    func listen(_ show: @escaping ([City]) -> Void) {
        listener = db.collection("cities").order(by: "name").addSnapshotListener { snapshot, error in
            guard let documents = snapshot?.documents else { return print("no cities: \(error!)") }
            show(documents.compactMap { try? $0.data(as: City.self) })
        }
    }

    func stop() { listener?.remove() }
}
// end

extension CityStore {
    func move(_ count: Int, from source: DocumentReference, to target: DocumentReference) async throws {
        // sample: apple-transaction
        _ = try await db.runTransaction { transaction, errorPointer in
            do {
                let left = try transaction.getDocument(source).get("population") as? Int ?? 0
                guard left >= count else {
                    throw NSError(
                        domain: "Cities", code: 1, userInfo: [NSLocalizedDescriptionKey: "Only \(left) live there."])
                }
                transaction.updateData(["population": FieldValue.increment(Int64(-count))], forDocument: source)
                transaction.updateData(["population": FieldValue.increment(Int64(count))], forDocument: target)
            } catch let error as NSError {
                errorPointer?.pointee = error
            }
            return nil
        }
        // end
    }

    func figures() async throws -> (count: Int, sum: Int) {
        let query = db.collection("cities").whereField("population", isGreaterThan: 0)
        let snapshot = try await query.aggregate([.count(), .sum("population")]).getAggregation(source: .server)
        return (snapshot.count.intValue, (snapshot.get(.sum("population")) as? NSNumber)?.intValue ?? 0)
    }

    func load(_ bundle: Data, _ show: @escaping (String) -> Void) {
        db.loadBundle(bundle) { [db] progress, error in
            guard let progress else { return show("not loaded: \(error!)") }
            show("\(progress.documentsLoaded) loaded")
            db.getQuery(named: "large") { query in
                guard let query else { return show("no query") }
                query.getDocuments(source: .cache) { snapshot, _ in
                    show(snapshot?.documents.map(\.documentID).joined(separator: ", ") ?? "nothing")
                }
            }
        }
    }
}
