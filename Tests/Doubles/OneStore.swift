import HearthModel
import HearthEngine

/// One database's store, for any name.
package final class OneStore: StoreProvider {
    private let store: any Store
    private let names: [DatabaseName]

    package init(_ store: any Store, named names: [DatabaseName] = []) {
        self.store = store
        self.names = names
    }

    package func open(_ database: DatabaseName) throws(Status) -> any Store { store }
    package func contains(_ database: DatabaseName) throws(Status) -> Bool { true }
    package func databases() throws(Status) -> [DatabaseName] { names }
    package func delete(_ database: DatabaseName) throws(Status) {}
}
