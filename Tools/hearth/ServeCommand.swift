import Glibc
import HearthModel
import HearthNetwork
import HearthServer

enum ServeCommand {
    static func run(_ arguments: [String]) {
        var configuration = Server.Configuration()
        var index = 0
        var port = 8080
        while index < arguments.count {
            switch arguments[index] {
            case "serve": break
            case "--memory": configuration.dataFolder = nil
            case "--port": index += 1; port = Int(arguments[index]) ?? 0
            case "--host": index += 1
            case "--data": index += 1; configuration.dataFolder = arguments[index]
            default: break
            }
            index += 1
        }
        configuration.network = ServerConfiguration(host: "127.0.0.1", port: port)
        do {
            let server = try Server(configuration)
            try server.start()
            print("listening on 127.0.0.1:\(server.port)")
            fflush(nil)
            while true { pause() }
        } catch {
            print("error: \(error)")
            exit(1)
        }
    }
}
