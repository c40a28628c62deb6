/// Why a command ended without success: one plain sentence and the number that a script sees.
package struct ToolFailure: Error, Equatable {
    /// The numbers are those of sysexits.h, which scripts know.
    package enum Code: Int32 {
        /// The workload or the check failed; the program itself is well.
        case failed = 1
        case usage = 64
        /// The address is taken, or isn't this machine's; a server can't be reached.
        case unavailable = 69
        case software = 70
        /// The data folder can't be used.
        case data = 73
        /// A configuration file or a certificate is wrong.
        case configuration = 78
    }

    var code: Code
    package var message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func usage(_ message: String) -> ToolFailure { ToolFailure(.usage, message) }
    package static func configuration(_ message: String) -> ToolFailure { ToolFailure(.configuration, message) }
}
