import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

/// The parsing of database URLs.
struct ApiLocationTests {
    private static let cases: [(url: String, host: String, isSecure: Bool, namespace: String, path: TreePath)] = [
        ("https://demo.firebaseio.com", "demo.firebaseio.com", true, "demo", "/"),
        ("https://demo.firebaseio.com/", "demo.firebaseio.com", true, "demo", "/"),
        ("https://Demo.FirebaseIO.com/a//b/", "demo.firebaseio.com", true, "demo", "a/b"),
        ("http://demo.firebaseio.com/a", "demo.firebaseio.com", true, "demo", "a"),
        ("https://demo.firebaseio.com?ns=other", "demo.firebaseio.com", true, "demo", "/"),
        (
            "https://d-rtdb.europe-west1.firebasedatabase.app", "d-rtdb.europe-west1.firebasedatabase.app", true,
            "d-rtdb", "/"
        ),
        ("http://localhost:9000?ns=demo", "localhost:9000", false, "demo", "/"),
        ("http://localhost:9000/a%20b?ns=de%2Dmo&x=1", "localhost:9000", false, "de-mo", "a b"),
        ("http://localhost:9000/?x=1&ns=demo#f", "localhost:9000", false, "demo", "/"),
        ("http://localhost:9000", "localhost:9000", false, "localhost", "/"),
        ("http://127.0.0.1:9000?ns=demo", "127.0.0.1:9000", false, "demo", "/"),
        ("http://[::1]:9000?ns=demo", "[::1]:9000", false, "demo", "/"),
        ("https://[::1]?ns=demo", "[::1]", true, "demo", "/"),
        ("https://data.example.org", "data.example.org", true, "data", "/"),
        ("https://data.example.org?ns=shop", "data.example.org", true, "shop", "/"),
        ("https://data.example.org:8443?ns=shop", "data.example.org:8443", true, "shop", "/"),
        ("https://demo.firebaseio.com/a+b/c%2B", "demo.firebaseio.com", true, "demo", "a b/c+"),
    ]

    @Test(arguments: cases)
    func parses(
        _ expected: (url: String, host: String, isSecure: Bool, namespace: String, path: TreePath)
    ) throws {
        let location = try DatabaseLocation(expected.url)
        #expect(location.hostAndPort == expected.host)
        #expect(location.isSecure == expected.isSecure)
        #expect(location.namespace == expected.namespace)
        #expect(location.path == expected.path)
    }

    @Test(arguments: [
        "", "demo", "demo.firebaseio.com", "ftp://demo.firebaseio.com", "https://", "https:///a", "http://x:0",
        "http://x:70000", "http://x:port", "https://x/%zz", "https://x/a%2Fb", "https://x/a.b", "https://us er@x",
    ])
    func refuses(_ url: String) {
        #expect(throws: Status.self) { _ = try DatabaseLocation(url) }
    }

    @Test func urlsOfLocations() throws {
        let location = try DatabaseLocation("https://demo.firebaseio.com")
        #expect(location.url(of: "/") == "https://demo.firebaseio.com/")
        #expect(location.url(of: "a/b c/ä€") == "https://demo.firebaseio.com/a/b%20c/%C3%A4%E2%82%AC")
        #expect(try DatabaseLocation(location.url(of: "a+b/c%d/😀")).path == "a+b/c%d/😀")
        let local = try DatabaseLocation("http://localhost:9000?ns=demo")
        #expect(local.url(of: "a") == "http://localhost:9000/a")
    }

    @Test func emulator() throws {
        var location = try DatabaseLocation("https://demo.firebaseio.com")
        try location.move(to: "127.0.0.1:9000")
        #expect(location.base == "http://127.0.0.1:9000")
        #expect(location.namespace == "demo")
        location.move(toHost: "::1", port: 9001)
        #expect(location.base == "http://[::1]:9001")
        #expect(throws: Status.self) { try location.move(to: "localhost") }
    }

    @Test func defaults() throws {
        let options = FirebaseOptions(projectID: "shop")
        #expect(try Database.url(of: options) == "https://shop-default-rtdb.firebaseio.com")
        options.databaseURL = "https://other.firebaseio.com"
        #expect(try Database.url(of: options) == "https://other.firebaseio.com")
        #expect(throws: Status.self) { try Database.url(of: FirebaseOptions(googleAppID: "", gcmSenderID: "")) }
    }

    @Test func cacheFolders() throws {
        let first = CacheFolder.folder(
            in: "/data", app: "__FIRAPP_DEFAULT", location: try DatabaseLocation("http://localhost:9000?ns=a.b"))
        #expect(first == "/data/__FIRAPP_DEFAULT/a%2eb@localhost%3a9000")
        #expect(try CacheFolder.standard(environment: ["XDG_DATA_HOME": "/x", "HOME": "/h"]) == "/x/firebase-database")
        #expect(try CacheFolder.standard(environment: ["HOME": "/h"]) == "/h/.local/share/firebase-database")
        #expect(throws: Status.self) { try CacheFolder.standard(environment: [:]) }
    }
}
