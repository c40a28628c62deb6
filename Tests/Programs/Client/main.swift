import Foundation
import HearthDatabase
import HearthFirestore

/// A program that uses both clients and ends, or is killed, at any moment: see `ProgramEndTests`.
///
///     hearth-test-client end SEED HOST:PORT tls|plain FOLDER
///     hearth-test-client write firestore|database APP RUN THREADS FOLDER [COUNT]
///     hearth-test-client log
let arguments = Array(CommandLine.arguments.dropFirst())
switch arguments.first {
case "end" where arguments.count == 5:
    EndingProgram(
        seed: UInt64(arguments[1]) ?? 0, host: arguments[2], isSecure: arguments[3] == "tls", folder: arguments[4]
    ).start()
case "write" where arguments.count >= 6:
    WritingProgram(
        product: arguments[1], app: arguments[2], run: arguments[3], threads: Int(arguments[4]) ?? 1,
        folder: arguments[5], count: arguments.count > 6 ? Int(arguments[6]) : nil
    ).start()
case "log": LoggingProgram().start()
default:
    FileHandle.standardError.write(Data("hearth-test-client: unknown arguments\n".utf8))
    exit(64)
}
