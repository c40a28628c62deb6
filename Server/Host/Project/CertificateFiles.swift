import HearthModel
import HearthNetwork
import Synchronization

/// Certificate and key of the server, read again when they change. While the files cannot be used, the former certificate
/// stays in use.
///
/// Whoever renews them replaces one file after the other. Between the two the key does not belong to the certificate, so
/// files that failed are tried again at every check, and each state of the files is logged once.
package final class CertificateFiles: Sendable {
    private struct State {
        var stamps: [FileStamp?]
        var isUsed = true
    }

    private let configuration: TLSConfiguration
    private let log: Log
    private let reload: @Sendable () throws(Status) -> Void
    private let state: Mutex<State>

    /// To be created before the files are read for the first time: a change after that is found.
    package init(
        _ configuration: TLSConfiguration, log: Log, reload: @escaping @Sendable () throws(Status) -> Void
    ) {
        self.configuration = configuration
        self.log = log
        self.reload = reload
        state = Mutex(State(stamps: Self.stamps(configuration)))
    }

    /// Checks for changes. To be called regularly, by one thread at a time.
    package func poll() {
        let stamps = Self.stamps(configuration)
        let (isNew, isUsed) = state.withLock { state in
            defer { state.stamps = stamps }
            return (state.stamps != stamps, state.isUsed)
        }
        guard isNew || !isUsed else { return }
        do throws(Status) {
            try reload()
            state.withLock { $0.isUsed = true }
            log.info("certificate reloaded", ("file", .string(configuration.certificatePath)))
        } catch {
            state.withLock { $0.isUsed = false }
            guard isNew else { return }
            log.warning(
                "the certificate cannot be renewed; the former one stays in use",
                ("file", .string(configuration.certificatePath)), ("reason", .string(error.message)))
        }
    }

    private static func stamps(_ configuration: TLSConfiguration) -> [FileStamp?] {
        [FileStamp(configuration.certificatePath), FileStamp(configuration.keyPath)]
    }
}
