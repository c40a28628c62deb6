// swift-format-ignore-file
// Compile-only check of the public API (our own code, no upstream code). It is never run.
// Change the import to the library's module name; the rest must compile unchanged, in Swift 5 and Swift 6 mode.
import HearthFirestore
import Foundation

// MARK: app, instances, settings

func instances() {
  FirebaseConfiguration.shared.setLoggerLevel(.debug)
  FirebaseConfiguration.shared.setLoggerLevel(.min)
  let _: FirebaseLoggerLevel = FirebaseConfiguration.shared.loggerLevel()
  FirebaseApp.configure()
  let a: Firestore = Firestore.firestore()
  let b = Firestore.firestore(database: "second")
  guard let app = FirebaseApp.app() else { return }
  let c = Firestore.firestore(app: app)
  let d = Firestore.firestore(app: app, database: "second")
  let _: FirebaseApp = a.app
  _ = (b, c, d)
  Firestore.enableLogging(true)
  a.useEmulator(withHost: "localhost", port: 8080)
}

func settings(_ db: Firestore) {
  let s = FirestoreSettings()
  s.host = "localhost:8080"
  s.isSSLEnabled = false
  s.dispatchQueue = DispatchQueue(label: "callbacks")
  s.cacheSettings = PersistentCacheSettings()
  s.cacheSettings = PersistentCacheSettings(sizeBytes: 1_048_576)
  s.cacheSettings = PersistentCacheSettings(sizeBytes: 200 * 1024 * 1024 as NSNumber)
  s.cacheSettings = PersistentCacheSettings(sizeBytes: NSNumber(value: FirestoreCacheSizeUnlimited))
  s.cacheSettings = MemoryCacheSettings()
  s.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryEagerGCSetting())
  s.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings())
  s.cacheSettings = MemoryCacheSettings(garbageCollectorSettings: MemoryLRUGCSettings(sizeBytes: 5_000_000))
  s.isPersistenceEnabled = true
  s.cacheSizeBytes = FirestoreCacheSizeUnlimited
  let _: Int64 = s.cacheSizeBytes
  db.settings = s
  let _: FirestoreSettings = db.settings
}

// MARK: references and queries

func references(_ db: Firestore) {
  let cities: CollectionReference = db.collection("cities")
  let city: DocumentReference = cities.document("zrh")
  let fresh: DocumentReference = cities.document()
  let same = db.document("cities/zrh")
  let sub = city.collection("landmarks")
  let _: String = cities.collectionID
  let _: DocumentReference? = sub.parent
  let _: String = cities.path
  let _: String = fresh.documentID
  let _: CollectionReference = city.parent
  let _: String = city.path
  let _: Firestore = city.firestore
  let _: Bool = city == same
  var seen = Set<DocumentReference>()
  seen.insert(city)
  let asQuery: Query = cities
  let _: Bool = asQuery == db.collectionGroup("landmarks")
}

func queries(_ db: Firestore, _ doc: DocumentSnapshot) {
  let name = FieldPath(["name", "official"])
  let base = db.collection("cities")
  let q: Query = base
    .whereField("state", isEqualTo: "ZH")
    .whereField("state", isNotEqualTo: NSNull())
    .whereField("pop", isLessThan: 10)
    .whereField("pop", isLessThanOrEqualTo: 10)
    .whereField("pop", isGreaterThan: 1.5)
    .whereField("pop", isGreaterThanOrEqualTo: Date())
    .whereField("tags", arrayContains: "lake")
    .whereField("tags", arrayContainsAny: ["lake", 3])
    .whereField("state", in: ["ZH", "BE"])
    .whereField("state", notIn: ["VS"])
    .whereField(name, isEqualTo: true)
    .whereField(name, isNotEqualTo: Data())
    .whereField(name, isLessThan: GeoPoint(latitude: 1, longitude: 2))
    .whereField(name, isLessThanOrEqualTo: Timestamp())
    .whereField(name, isGreaterThan: 1)
    .whereField(name, isGreaterThanOrEqualTo: 1)
    .whereField(name, arrayContains: ["a": 1])
    .whereField(name, arrayContainsAny: [1])
    .whereField(FieldPath.documentID(), in: [base.document("a"), "b"])
    .whereField(name, notIn: [1])
    .order(by: "pop")
    .order(by: "pop", descending: true)
    .order(by: name)
    .order(by: name, descending: false)
  _ = q.limit(to: 5)
  _ = q.limit(toLast: 5)
  _ = q.start(at: ["ZH", 3])
  _ = q.start(after: ["ZH"])
  _ = q.end(at: ["ZH"])
  _ = q.end(before: ["ZH"])
  _ = q.start(atDocument: doc)
  _ = q.start(afterDocument: doc)
  _ = q.end(atDocument: doc)
  _ = q.end(beforeDocument: doc)
  _ = q.whereFilter(
    Filter.orFilter([
      Filter.whereField("a", isEqualTo: 1),
      Filter.andFilter([
        Filter.whereField("b", isNotEqualTo: 1),
        Filter.whereField("b", isGreaterThan: 1),
        Filter.whereField("b", isGreaterOrEqualTo: 1),
        Filter.whereField("b", isLessThan: 1),
        Filter.whereField("b", isLessThanOrEqualTo: 1),
        Filter.whereField("c", arrayContains: 1),
        Filter.whereField("c", arrayContainsAny: [1]),
        Filter.whereField("d", in: [1]),
        Filter.whereField("d", notIn: [1]),
      ]),
      Filter.whereField(name, isEqualTo: 1),
      Filter.whereField(name, isGreaterOrEqualTo: 1),
    ]))
}

// MARK: writing with completion handlers

func writes(_ db: Firestore, _ ref: DocumentReference) throws {
  let data: [String: Any] = [
    "int": 1, "double": 1.5, "bool": true, "null": NSNull(), "string": "t", "bytes": Data([1]),
    "date": Date(), "time": Timestamp(date: Date()), "point": GeoPoint(latitude: 1, longitude: 2),
    "ref": ref, "list": [1, "two"] as [Any], "map": ["x": ["y": 1]],
    "vector": FieldValue.vector([1.0, 2.0]), "vector2": VectorValue([1.0, 2.0]),
    "now": FieldValue.serverTimestamp(), "union": FieldValue.arrayUnion(["a", 1]),
    "less": FieldValue.arrayRemove(["b"]), "more": FieldValue.increment(Int64(2)),
    "more2": FieldValue.increment(0.5), "low": FieldValue.minimum(Int64(2)), "high": FieldValue.maximum(2.5),
  ]
  let done: ((Error?) -> Void) = { error in _ = error?.localizedDescription }
  ref.setData(data)
  ref.setData(data, completion: done)
  ref.setData(data, merge: true)
  ref.setData(data, merge: true, completion: done)
  ref.setData(data, mergeFields: ["a", FieldPath(["b", "c"])])
  ref.setData(data, mergeFields: ["a"]) { error in _ = error }
  ref.updateData(["a.b": 1, FieldPath(["c", "d.e"]): FieldValue.delete()])
  ref.updateData(["a": 1]) { error in _ = error }
  ref.delete()
  ref.delete { error in _ = error }
  db.collection("c").addDocument(data: data)
  let added: DocumentReference = db.collection("c").addDocument(data: data) { error in _ = error }
  _ = added

  let batch = db.batch()
  batch.setData(data, forDocument: ref)
    .setData(data, forDocument: ref, merge: true)
    .setData(data, forDocument: ref, mergeFields: ["a"])
    .updateData(["a": 1, FieldPath(["b"]): 2], forDocument: ref)
    .deleteDocument(ref)
  try batch.setData(from: City(name: "Bern"), forDocument: ref)
  try batch.setData(from: City(name: "Bern"), forDocument: ref, merge: true)
  try batch.setData(from: City(name: "Bern"), forDocument: ref, mergeFields: ["name"])
  batch.commit()
  batch.commit { error in _ = error }
}

func transactions(_ db: Firestore, _ ref: DocumentReference) {
  db.runTransaction({ (transaction, errorPointer) -> Any? in
    let snapshot: DocumentSnapshot
    do {
      try snapshot = transaction.getDocument(ref)
    } catch let failure as NSError {
      errorPointer?.pointee = failure
      return nil
    }
    guard let pop = snapshot.data()?["population"] as? Int else {
      errorPointer?.pointee = NSError(domain: "App", code: -1, userInfo: [NSLocalizedDescriptionKey: "no population"])
      return nil
    }
    transaction.updateData(["population": pop + 1], forDocument: ref)
    transaction.setData(["a": 1], forDocument: ref)
    transaction.setData(["a": 1], forDocument: ref, merge: true)
    transaction.setData(["a": 1], forDocument: ref, mergeFields: ["a"])
    transaction.deleteDocument(ref)
    return pop + 1
  }) { (object, error) in
    _ = object as? Int
    _ = error
  }
  let options = TransactionOptions()
  options.maxAttempts = 3
  db.runTransaction(with: options, block: { transaction, _ in
    _ = try? transaction.setData(from: City(name: "Bern"), forDocument: ref)
    return nil
  }, completion: { _, _ in })
  db.runTransaction(with: nil, block: { _, _ in nil }) { _, _ in }
}

// MARK: reading

func reads(_ ref: DocumentReference, _ query: Query) {
  ref.getDocument { (document, error) in
    guard let document, document.exists else { return }
    let _: [String: Any]? = document.data()
    let _: [String: Any]? = document.data(with: .estimate)
    let _: Any? = document.get("a.b")
    let _: Any? = document.get(FieldPath(["a", "b"]))
    let _: Any? = document.get("a", serverTimestampBehavior: .previous)
    let _: Any? = document["a.b"]
    let _: Int? = document["a"] as? Int
    let _: DocumentReference = document.reference
    let _: String = document.documentID
    let _: Bool = document.metadata.hasPendingWrites || document.metadata.isFromCache
    let _: City? = try? document.data(as: City.self)
    let _: City? = try? document.data(as: City.self, with: .estimate, decoder: Firestore.Decoder())
    if let error { handle(error) }
  }
  ref.getDocument(source: .cache) { _, _ in }
  ref.getDocument(as: City.self) { (result: Result<City, Error>) in
    switch result {
    case .success(let city): _ = city.name
    case .failure(let error): handle(error)
    }
  }
  ref.getDocument(as: City?.self, with: .none, decoder: .init(), source: .server) { _ in }
  query.getDocuments { (snapshot, error) in
    guard let snapshot else { return }
    for document in snapshot.documents {
      let _: [String: Any] = document.data()
      let _: [String: Any] = document.data(with: .none)
    }
    let _: Bool = snapshot.isEmpty
    let _: Int = snapshot.count
    let _: Query = snapshot.query
    let _: Bool = snapshot.metadata.isFromCache
    for change in snapshot.documentChanges(includeMetadataChanges: true) {
      switch change.type {
      case .added: break
      case .modified: break
      case .removed: break
      }
      let _: UInt = change.oldIndex
      let _: Bool = change.newIndex == UInt(NSNotFound)
      let _: QueryDocumentSnapshot = change.document
    }
    let _: [DocumentChange] = snapshot.documentChanges
    _ = error
  }
  query.getDocuments(source: FirestoreSource.server) { _, _ in }
}

func listeners(_ db: Firestore, _ ref: DocumentReference, _ query: Query) {
  var registrations: [ListenerRegistration] = []
  registrations.append(ref.addSnapshotListener { documentSnapshot, error in _ = (documentSnapshot?.data(), error) })
  registrations.append(ref.addSnapshotListener(includeMetadataChanges: true) { _, _ in })
  registrations.append(query.addSnapshotListener { querySnapshot, error in _ = (querySnapshot?.documents, error) })
  registrations.append(query.addSnapshotListener(includeMetadataChanges: true) { _, _ in })
  let options = SnapshotListenOptions().withIncludeMetadataChanges(true).withSource(.cache)
  let _: ListenSource = options.source
  let _: Bool = options.includeMetadataChanges
  registrations.append(ref.addSnapshotListener(options: options) { _, _ in })
  registrations.append(query.addSnapshotListener(options: options) { _, _ in })
  registrations.append(db.addSnapshotsInSyncListener {})
  registrations.forEach { $0.remove() }
  query.addSnapshotListener { _, _ in } // // the result may be ignored
}

func aggregations(_ query: Query) async throws {
  let count: AggregateQuery = query.count
  count.getAggregation(source: .server) { snapshot, error in
    let _: NSNumber? = snapshot?.count
    let _: Int? = snapshot?.count.intValue
    _ = error
  }
  let many = query.aggregate([
    AggregateField.count(), AggregateField.sum("pop"), AggregateField.average("pop"),
    AggregateField.sum(FieldPath(["a", "b"])), AggregateField.average(FieldPath(["a", "b"])),
  ])
  let snapshot: AggregateQuerySnapshot = try await many.getAggregation(source: .server)
  let _: Any = snapshot.get(AggregateField.sum("pop"))
  let _: Double? = snapshot.get(AggregateField.average("pop")) as? Double
  let _: AggregateQuery = snapshot.query
  let _: Query = many.query
}

// MARK: whole-client calls

func control(_ db: Firestore) {
  db.enableNetwork { error in _ = error }
  db.enableNetwork()
  db.disableNetwork { error in _ = error }
  db.clearPersistence { error in _ = error }
  db.waitForPendingWrites { error in _ = error }
  db.terminate { error in _ = error }
  if let manager: PersistentCacheIndexManager = db.persistentCacheIndexManager {
    manager.enableIndexAutoCreation()
    manager.disableIndexAutoCreation()
    manager.deleteAllIndexes()
  }
  db.setIndexConfiguration("{}") { error in _ = error }
  db.setIndexConfiguration(InputStream(data: Data()), completion: nil)
}

func bundles(_ db: Firestore) async throws {
  let task: LoadBundleTask = db.loadBundle(Data())
  let handle: LoadBundleObserverHandle = task.addObserver { (progress: LoadBundleTaskProgress) in
    switch progress.state {
    case .error, .inProgress, .success: break
    @unknown default: break
    }
    _ = Double(progress.bytesLoaded) / Double(progress.totalBytes)
    _ = progress.documentsLoaded == progress.totalDocuments
  }
  task.removeObserverWith(handle: handle)
  task.removeAllObservers()
}

func bundles2(_ db: Firestore) {
  let _: LoadBundleTask = db.loadBundle(InputStream(data: Data()))
  db.loadBundle(Data()) { progress, error in _ = (progress?.state, error) }
  db.loadBundle(InputStream(data: Data())) { _, _ in }
  db.getQuery(named: "latest") { (query: Query?) in _ = query }
}

// MARK: async

func asyncCalls(_ db: Firestore, _ ref: DocumentReference, _ query: Query) async throws {
  try await ref.setData(["a": 1])
  try await ref.setData(["a": 1], merge: true)
  try await ref.setData(["a": 1], mergeFields: ["a"])
  try await ref.updateData(["a": 1])
  try await ref.delete()
  let _: DocumentReference = try await db.collection("c").addDocument(data: ["a": 1])
  try await db.collection("c").addDocument(data: ["a": 1])
  let _: DocumentSnapshot = try await ref.getDocument()
  let _: DocumentSnapshot = try await ref.getDocument(source: .cache)
  let _: City = try await ref.getDocument(as: City.self)
  let _: QuerySnapshot = try await query.getDocuments()
  let _: QuerySnapshot = try await query.getDocuments(source: .server)
  let batch = db.batch()
  try await batch.commit()
  let sum = try await db.runTransaction { transaction, errorPointer -> Any? in
    do {
      let old = try transaction.getDocument(ref).data()?["n"] as? Int ?? 0
      transaction.updateData(["n": old + 1], forDocument: ref)
      return old + 1
    } catch {
      errorPointer?.pointee = error as NSError
      return nil
    }
  }
  _ = sum as? Int
  try await db.enableNetwork()
  try await db.disableNetwork()
  try await db.waitForPendingWrites()
  try await db.clearPersistence()
  try await db.terminate()
  try await db.setIndexConfiguration("{}")
  let _: LoadBundleTaskProgress = try await db.loadBundle(Data())
  try await db.loadBundle(InputStream(data: Data()))
  let _: Query? = await db.getQuery(named: "latest")
  for try await snapshot in query.snapshots { _ = snapshot.count }
  for try await snapshot in query.snapshots(includeMetadataChanges: true) { _ = snapshot.metadata }
  for try await snapshot in ref.snapshots { _ = snapshot.exists }
  for try await snapshot in ref.snapshots(includeMetadataChanges: true) { _ = snapshot.exists }
}

actor Repository {
  let db: Firestore
  init(db: Firestore) { self.db = db }
  func names() async throws -> [String] {
    try await db.collection("cities").getDocuments().documents.compactMap { $0.data()["name"] as? String }
  }
}

// MARK: errors

func handle(_ error: Error) {
  switch error {
  case FirestoreErrorCode.unavailable: break
  case FirestoreErrorCode.permissionDenied, FirestoreErrorCode.notFound: break
  default: break
  }
  let nsError = error as NSError
  if nsError.domain == FirestoreErrorDomain, let code = FirestoreErrorCode.Code(rawValue: nsError.code) {
    switch code {
    case .OK, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists: break
    case .permissionDenied, .resourceExhausted, .failedPrecondition, .aborted, .outOfRange: break
    case .unimplemented, .internal, .unavailable, .dataLoss, .unauthenticated: break
    @unknown default: break
    }
  }
  _ = nsError.code == FirestoreErrorCode.aborted.rawValue
  if let typed = error as? FirestoreErrorCode {
    let _: FirestoreErrorCode.Code = typed.code
    let _: [String: Any] = typed.userInfo
    let _: Int = typed.errorCode
    switch typed.code {
    case .unavailable: break
    default: break
    }
  }
  let _: String = FirestoreErrorCode.errorDomain
  let _: NSError = FirestoreErrorCode(.notFound) as NSError
  if let failure = error as? FirestoreDecodingError {
    switch failure {
    case .decodingIsNotSupported(let string), .fieldNameConflict(let string): _ = string
    }
  }
  if case FirestoreEncodingError.encodingIsNotSupported(let string) = error { _ = string }
}

func catching(_ ref: DocumentReference) async {
  do {
    try await ref.delete()
  } catch FirestoreErrorCode.unavailable {
  } catch let error as NSError where error.code == 7 {
  } catch {
  }
}

// MARK: Codable

struct City: Codable, Equatable {
  @DocumentID var id: String?
  var name: String
  @ServerTimestamp var updated: Timestamp?
  @ServerTimestamp var seen: Date?
  @ExplicitNull var mayor: String?
  var location: GeoPoint?
  var created: Timestamp?
  var twin: DocumentReference?
  var embedding: VectorValue?
  var founded: Date?
  var flag: Data?
  init(name: String) { self.name = name }
}

struct Linked: Codable, Hashable {
  @DocumentID var ref: DocumentReference?
}

struct Patch: Encodable {
  var count: FieldValue
}

func coding(_ ref: DocumentReference) throws {
  let city = City(name: "Bern")
  try ref.setData(from: city)
  try ref.setData(from: city) { error in _ = error }
  try ref.setData(from: city, merge: true)
  try ref.setData(from: city, mergeFields: ["name", FieldPath(["mayor"])])
  try ref.setData(from: city, encoder: Firestore.Encoder())
  try ref.parent.addDocument(from: city)
  let _: DocumentReference = try ref.parent.addDocument(from: city, encoder: Firestore.Encoder()) { error in _ = error }
}

/// The forms without `async` compile without `await` where Swift would select an `async` overload.
func codingInAsynchronousCode(_ ref: DocumentReference) async throws {
  let city = City(name: "Bern")
  try ref.setData(from: city)
  try ref.setData(from: city) { error in _ = error }
  try ref.setData(from: city, merge: true)
  try ref.setData(from: city, mergeFields: ["name"])
  try ref.setData(from: city, encoder: Firestore.Encoder())
  try ref.parent.addDocument(from: city)
  let _: DocumentReference = try ref.parent.addDocument(from: city, encoder: Firestore.Encoder()) { error in _ = error }
}

/// A user interface iterates on the main actor.
@MainActor func additionsOnTheMainActor(_ db: Firestore, _ ref: DocumentReference, _ show: (Int) -> Void) async throws {
  for try await count in db.pendingWriteCounts { show(count) }
  try await ref.setData(encoding: City(name: "Bern"))
}

/// Hearth's own: not in Apple's library.
func additions(_ db: Firestore, _ ref: DocumentReference) async throws {
  let city = City(name: "Bern")
  try await ref.setData(encoding: city)
  try await ref.setData(encoding: city, encoder: Firestore.Encoder())
  try await ref.setData(encoding: city, merge: true)
  try await ref.setData(encoding: city, mergeFields: ["name", FieldPath(["mayor"])])
  try await ref.parent.addDocument(encoding: city)
  let _: DocumentReference = try await ref.parent.addDocument(encoding: city, encoder: Firestore.Encoder())
  for try await count in db.pendingWriteCounts { let _: Int = count }
  let builder: BundleBuilder = db.bundle("first-page")
  try builder.add(try await ref.getDocument(source: .server)).add("all", try await ref.parent.getDocuments(source: .server))
  let _: Data = try db.bundle().build()
  let _: String = builder.bundleID
  let _: Firestore.PendingWriteCountsSequence = db.pendingWriteCounts
}

func coders(_ ref: DocumentReference) throws {
  let encoder = Firestore.Encoder()
  encoder.dateEncodingStrategy = .timestamp
  encoder.dateEncodingStrategy = .iso8601
  encoder.dateEncodingStrategy = .secondsSince1970
  encoder.dateEncodingStrategy = .millisecondsSince1970
  encoder.dateEncodingStrategy = .deferredToDate
  encoder.dateEncodingStrategy = .formatted(DateFormatter())
  encoder.dateEncodingStrategy = .custom { date, encoder in
    var container = encoder.singleValueContainer()
    try container.encode(date.timeIntervalSince1970)
  }
  encoder.dataEncodingStrategy = .blob
  encoder.dataEncodingStrategy = .base64
  encoder.dataEncodingStrategy = .deferredToData
  encoder.nonConformingFloatEncodingStrategy = .throw
  encoder.nonConformingFloatEncodingStrategy =
    .convertToString(positiveInfinity: "+", negativeInfinity: "-", nan: "?")
  encoder.keyEncodingStrategy = .useDefaultKeys
  encoder.keyEncodingStrategy = .convertToSnakeCase
  encoder.keyEncodingStrategy = .custom { path in path.last! }
  encoder.userInfo[CodingUserInfoKey(rawValue: "k")!] = 1
  let map: [String: Any] = try encoder.encode(Patch(count: FieldValue.increment(Int64(1))))

  let decoder = Firestore.Decoder()
  decoder.dateDecodingStrategy = .timestamp
  decoder.dateDecodingStrategy = .custom { _ in Date() }
  decoder.dataDecodingStrategy = .blob
  decoder.nonConformingFloatDecodingStrategy =
    .convertFromString(positiveInfinity: "+", negativeInfinity: "-", nan: "?")
  decoder.keyDecodingStrategy = .convertFromSnakeCase
  let _: City = try decoder.decode(City.self, from: map)
  let _: City = try decoder.decode(City.self, from: map, in: ref)
}

// MARK: values

func values() {
  let t = Timestamp(seconds: 1, nanoseconds: 2)
  let _: Int64 = t.seconds
  let _: Int32 = t.nanoseconds
  let _: Date = t.dateValue()
  let _: Bool = t.compare(Timestamp(date: Date())) == .orderedAscending
  let _: Bool = t == Timestamp()
  let g = GeoPoint(latitude: 47.4, longitude: 8.5)
  let _: Double = g.latitude + g.longitude
  let v = FieldValue.vector([Float(1), Float(2)])
  let _: [Double] = v.array
  let _: Bool = FieldPath(["a"]) == FieldPath(["a"])
  let _: [AnyHashable: Any] = [FieldPath(["a"]): 1, "b": 2]
  let _: Set<Timestamp> = [t]
  let _: any Sendable = g
}

// MARK: users

func users(_ auth: Auth) async throws {
  let user: User? = auth.currentUser
  user?.getIDToken { (token: String?, error: Error?) in _ = (token, error) }
  user?.getIDTokenForcingRefresh(true) { token, error in _ = (token, error) }
  let _: String? = try await user?.getIDToken()
  let _: String? = try await user?.getIDToken(forcingRefresh: true)
}
