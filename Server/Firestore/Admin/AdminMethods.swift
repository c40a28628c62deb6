import HearthModel
import HearthWire

/// The methods of the admin services.
enum AdminMethods {
    static let admin = "/google.firestore.admin.v1.FirestoreAdmin/"
    private static let operations = "/google.longrunning.Operations/"
    static let locations = "/google.cloud.location.Locations/"

    static let createIndex = AdminMethod(
        admin + "CreateIndex", .writes, resource: \.parent, AdminService.createIndex)
    static let listIndexes = AdminMethod(
        admin + "ListIndexes", .reads, resource: \.parent, AdminService.listIndexes)
    static let getIndex = AdminMethod(admin + "GetIndex", .reads, resource: \.name, AdminService.getIndex)
    static let deleteIndex = AdminMethod(admin + "DeleteIndex", .writes, resource: \.name, AdminService.deleteIndex)
    static let getField = AdminMethod(admin + "GetField", .reads, resource: \.name, AdminService.getField)
    static let updateField = AdminMethod(
        admin + "UpdateField", .writes, resource: { $0.field?.name ?? "" }, AdminService.updateField)
    static let listFields = AdminMethod(admin + "ListFields", .reads, resource: \.parent, AdminService.listFields)
    static let createDatabase = AdminMethod(
        admin + "CreateDatabase", .writes, resource: \.parent, AdminService.createDatabase)
    static let getDatabase = AdminMethod(admin + "GetDatabase", .reads, resource: \.name, AdminService.getDatabase)
    static let listDatabases = AdminMethod(
        admin + "ListDatabases", .reads, resource: \.parent, AdminService.listDatabases)
    static let updateDatabase = AdminMethod(
        admin + "UpdateDatabase", .writes, resource: { $0.database?.name ?? "" }, AdminService.updateDatabase)
    static let deleteDatabase = AdminMethod(
        admin + "DeleteDatabase", .writes, resource: \.name, AdminService.deleteDatabase)
    static let bulkDeleteDocuments = AdminMethod(
        admin + "BulkDeleteDocuments", .writes, resource: \.name, AdminService.bulkDeleteDocuments)

    static let exportDocuments = AdminMethod(
        admin + "ExportDocuments", .writes, resource: \.name, concernsServer: true, AdminService.exportDocuments)
    static let importDocuments = AdminMethod(
        admin + "ImportDocuments", .writes, resource: \.name, concernsServer: true, AdminService.importDocuments)

    static let getOperation = AdminMethod(
        operations + "GetOperation", .reads, resource: \.name, AdminService.getOperation)
    static let listOperations = AdminMethod(
        operations + "ListOperations", .reads, resource: \.name, AdminService.listOperations)
    static let deleteOperation = AdminMethod(
        operations + "DeleteOperation", .writes, resource: \.name, AdminService.deleteOperation)
    static let cancelOperation = AdminMethod(
        operations + "CancelOperation", .writes, resource: \.name, AdminService.cancelOperation)
    static let waitOperation = AdminMethod(
        operations + "WaitOperation", .reads, resource: \.name, AdminService.waitOperation)

    static let listLocations = AdminMethod(
        locations + "ListLocations", .reads, resource: \.name, AdminService.listLocations)
    static let getLocation = AdminMethod(
        locations + "GetLocation", .reads, resource: \.name, AdminService.getLocation)

    /// The methods that gRPC serves.
    static let all: [any AnyAdminMethod] = [
        createIndex, listIndexes, getIndex, deleteIndex, getField, updateField, listFields, createDatabase, getDatabase,
        listDatabases, updateDatabase, deleteDatabase, bulkDeleteDocuments, exportDocuments, importDocuments,
        getOperation, listOperations, deleteOperation, cancelOperation, waitOperation, listLocations, getLocation,
    ]
}
