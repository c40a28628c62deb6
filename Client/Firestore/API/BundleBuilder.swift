public import Foundation
internal import HearthModel

/// Makes a data bundle of documents and query results: a file that fills the caches of other programs by
/// `Firestore.loadBundle`, without reads at the server. The functions are those of Google's Admin SDK for Node.js;
/// Apple's library has none.
///
/// Add snapshots that were read from the server, after `waitForPendingWrites()`: a result in which a deletion waits for
/// the server would leave out a document that exists. All content is held in memory. All functions may be called from
/// any thread.
public final class BundleBuilder: Sendable {
    /// The bundle's name. A client that has loaded a bundle of this name loads only newer ones.
    public let bundleID: String
    private let content: Locked<BundleContent>

    init(_ content: BundleContent) {
        bundleID = content.id
        self.content = Locked(content)
    }

    /// Adds a document, which may be missing at the server. Of several snapshots of one document the newest is kept.
    /// - Parameter snapshot: a snapshot without local writes, of the builder's database. A missing document must be
    ///   read with `FirestoreSource.server`.
    /// - Returns: this builder.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `failedPrecondition` for a snapshot with local writes, and for
    ///   a document that is missing only in the cache; `invalidArgument` for a document of another database, or with a
    ///   reference to one.
    @discardableResult
    public func add(_ snapshot: DocumentSnapshot) throws -> BundleBuilder {
        try change { (content) throws(Status) in try content.add(snapshot) }
    }

    /// Adds a query under a name, with the documents of its result. Clients get the query by
    /// `Firestore.getQuery(named:)`.
    /// - Parameters:
    ///   - queryName: a name that the bundle does not have yet; not empty.
    ///   - snapshot: a result of the builder's database without local writes, read with `FirestoreSource.server` or
    ///     received by a listener with `SnapshotMetadata.isFromCache` false.
    /// - Returns: this builder.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: `alreadyExists` for a name that is in use;
    ///   `failedPrecondition` for a result from the cache or with local writes; `invalidArgument` for an empty name, a
    ///   query of another database, or a document with a reference to one, after which the builder cannot be used.
    @discardableResult
    public func add(_ queryName: String, _ snapshot: QuerySnapshot) throws -> BundleBuilder {
        try change { (content) throws(Status) in try content.add(queryName, snapshot) }
    }

    /// Makes the bundle of everything that was added. More may be added afterwards, for another bundle.
    /// - Returns: the bundle's bytes, as `Firestore.loadBundle` and `hearth bundle inspect` read them. The same snapshots
    ///   give the same bytes.
    /// - Throws: an `NSError` of `FirestoreErrorDomain`: the reason why a snapshot was added in part.
    public func build() throws -> Data {
        do throws(Status) {
            return Data(try content.with { (content) throws(Status) in try content.build() })
        } catch {
            throw error.nsError
        }
    }

    private func change(_ body: (inout BundleContent) throws(Status) -> Void) throws -> BundleBuilder {
        do throws(Status) {
            try content.with { (content) throws(Status) in try body(&content) }
        } catch {
            throw error.nsError
        }
        return self
    }
}

extension Firestore {
    /// A builder of a data bundle with snapshots of this database. Apple's library has no such function.
    /// - Parameter bundleID: the bundle's name; nil for a random one of 20 characters. An empty name ends the program.
    /// - Returns: an empty builder.
    public func bundle(_ bundleID: String? = nil) -> BundleBuilder {
        BundleBuilder(
            orTrap { () throws(Status) in
                try BundleContent(id: bundleID ?? Paths.newDocumentID(), database: databaseName)
            })
    }
}
