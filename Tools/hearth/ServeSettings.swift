import HearthBackup
import HearthFirestoreServer
import HearthHost
import HearthTriggers

/// A server's settings from all sources.
struct ServeSettings: Sendable, Equatable {
    var host = "127.0.0.1"
    var port = 8080
    /// A second address, for the Realtime Database.
    var databaseHost: String?
    var databasePort: Int?
    /// Nil keeps everything in memory.
    var dataFolder: String? = "hearth-data"
    var project = "demo-hearth"
    /// Index definitions by database id.
    var indexes: [String: IndexConfiguration] = [:]
    /// The sources, for the start-up message.
    var indexFiles: [String] = []
    var tlsCertificate: String?
    var tlsKey: String?
    var logFormat = Log.Format.string
    var logLevel = Log.Level.info
    var logsRequests = false
    var requiresIndexes = false
    var allowsClockSkew = false
    var isEmulator = true
    /// Origins of web pages that a server for local development serves besides those at loopback addresses.
    var allowedOrigins: [String] = []
    /// Whether rules of lists are evaluated as in Google's emulator; nil in local development only.
    var emulatesRulesOfLists: Bool?
    /// Names of such a server.
    var allowedHosts: [String] = []
    /// Files with security rules, by database id.
    var rules: [String: String] = [:]
    /// The file with rules of the Realtime Database for every namespace without rules of its own.
    var databaseRules: String?
    /// Those by namespace.
    var databaseRulesByName: [String: String] = [:]
    var identity = IdentityConfiguration()
    /// Definitions of bundles by name.
    var bundles: [String: BundleDefinition] = [:]
    /// The configuration, which need not exist, and the triggers that it defines.
    var triggerFile: TriggerFile?
    var triggers: [TriggerDefinition] = []
    /// Backups on a timer.
    var backups: BackupSchedule.Configuration?
    /// For exports and imports of the admin API.
    var exportFolder: String?
    /// Of the functions emulator, `HOST:PORT`.
    var functionsEmulator: String?
    /// The region that events name.
    var location = "us-central1"
    /// The top-level collection of which old documents are deleted; empty for none.
    var onceCollection = "_once"
    /// Whether documents are deleted that have expired.
    var deletesExpired = true
    /// The export that is imported before the first request.
    var importPath: String?
    /// The folder that is exported to after the last request.
    var exportPath: String?
    var loops = 0
    var workers = 4
    var checkpointKiB = 81_920
    var graceSeconds = 5
    /// For how long change feeds can be read.
    var changesRetentionSeconds: Int?
    /// Warnings about settings without effect.
    var warnings: [String] = []
}
