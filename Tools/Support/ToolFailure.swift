/// The failure of a command: a message and the exit code.
package struct ToolFailure: Error, Equatable {
    /// The codes are those of sysexits.h.
    package enum Code: Int32 {
        /// The workload or the check failed; the program itself works.
        case failed = 1
        case usage = 64
        /// The address is in use, or does not belong to this machine; a server cannot be reached.
        case unavailable = 69
        case software = 70
        /// The data folder cannot be used.
        case data = 73
        /// A configuration file or a certificate is invalid.
        case configuration = 78
    }

    package var code: Code
    package var message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func usage(_ message: String) -> ToolFailure { ToolFailure(.usage, message) }
    package static func configuration(_ message: String) -> ToolFailure { ToolFailure(.configuration, message) }
}
