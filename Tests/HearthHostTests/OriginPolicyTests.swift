import Testing

@testable import HearthNetwork
@testable import HearthHost

/// Tests which web pages a server for local development serves.
@Suite struct OriginPolicyTests {
    private func head(
        _ authority: String, _ fields: [String: String] = [:], method: String = "GET", path: String = "/"
    ) -> HTTPRequestHead {
        HTTPRequestHead(
            method: method, target: path, authority: authority, scheme: "http",
            headers: fields.map { HTTPHeader($0.key, $0.value) }, version: .http1_1, remoteAddress: "127.0.0.1:1",
            connectionNumber: 1, isSecure: false)
    }

    private let policy = OriginPolicy(
        origins: ["https://app.example:3000"], hosts: ["Dev.Example", "0.0.0.0"])

    @Test(arguments: [
        "", "localhost", "localhost:8080", "LOCALHOST:8080", "a.localhost:1", "127.0.0.1:8080", "127.9.9.9",
        "[::1]:8080",
        "192.168.1.5:80", "[fe80::1]", "hearth:8080", "dev.example:8080", "dev.example.:8080", "ns.firebaseio.com",
    ])
    func hostsThatAreServed(_ host: String) {
        #expect(policy.refusal(head(host)) == nil)
    }

    @Test(arguments: [
        "evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost.example",
        "127.0.0.256.example", "1.2.3", "1.2.3.4.5", "256.1.1.1", "1..2.3", "1.2.3.", "firebaseio.com.evil.example",
    ])
    func hostsThatAnybodyCanPointHere(_ host: String) {
        #expect(policy.refusal(head(host))?.contains("--allow-host") == true)
    }

    @Test(arguments: [
        "http://localhost:3000", "http://LOCALHOST", "https://a.localhost", "http://127.0.0.1:5000",
        "http://[::1]:5000",
        "https://app.example:3000", "capacitor://localhost",
    ])
    func pagesThatAreServed(_ origin: String) {
        #expect(policy.refusal(head("localhost:8080", ["origin": origin])) == nil)
    }

    @Test(arguments: [
        "https://evil.example", "http://localhost.evil.example", "https://app.example", "http://app.example:3000",
        "https://app.example:3000.evil.example", "null", "", "http://", "localhost", "http://192.168.1.5:3000",
        "chrome-extension://abc", "http://127.0.0.1.evil.example", "file://",
    ])
    func pagesThatAreNot(_ origin: String) {
        #expect(policy.refusal(head("localhost:8080", ["origin": origin]))?.contains("--allow-origin") == true)
        #expect(policy.refusal(head("localhost:8080", ["origin": origin], method: "OPTIONS")) != nil)
    }

    @Test func aPageFromTheHostThatItConnectsToIsServed() {
        #expect(policy.refusal(head("192.168.1.5:8080", ["origin": "http://192.168.1.5:3000"])) == nil)
        #expect(policy.refusal(head("192.168.1.5:8080", ["origin": "http://192.168.1.6:3000"])) != nil)
        // A name that resolves to this server is rejected because of the name.
        #expect(policy.refusal(head("evil.example", ["origin": "http://evil.example"])) != nil)
    }

    @Test func filesAreServedWhenAllowed() {
        let policy = OriginPolicy(origins: ["null"], hosts: [])
        #expect(policy.refusal(head("localhost", ["origin": "null"])) == nil)
    }

    /// A script of another page carries no origin, and reads the response as JSONP.
    @Test func scriptsOfOtherPagesAreRejected() {
        func script(_ fields: [String: String]) -> HTTPRequestHead {
            head(
                "localhost:9000",
                fields.merging(["sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"]) { $1 },
                path: "/.json?callback=x")
        }
        #expect(policy.refusal(script(["sec-fetch-site": "cross-site"])) != nil)
        #expect(
            policy.refusal(script(["sec-fetch-site": "cross-site", "referer": "https://evil.example/a?b"])) != nil)
        #expect(
            policy.refusal(script(["sec-fetch-site": "cross-site", "referer": "http://127.0.0.1:3000/a"])) == nil)
        #expect(policy.refusal(script(["sec-fetch-site": "same-site"])) == nil)
        #expect(policy.refusal(script(["sec-fetch-site": "same-origin"])) == nil)
    }

    @Test func openingAnAddressInATabIsAllowed() {
        let tab = ["sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"]
        #expect(policy.refusal(head("localhost:8080", tab)) == nil)
        #expect(policy.refusal(head("localhost:8080", tab, method: "POST")) != nil)
        let frame = tab.merging(["sec-fetch-dest": "iframe"]) { $1 }
        #expect(policy.refusal(head("localhost:8080", frame)) != nil)
    }

    @Test func origins() {
        for string in ["null", "https://a.example", "http://[::1]:1", "app://x"] {
            #expect(OriginPolicy.isOrigin(string), "\(string)")
        }
        for string in ["", "a.example", "https://", "https://a/", "https://a?b", "://a", "https://u@a"] {
            #expect(!OriginPolicy.isOrigin(string), "\(string)")
        }
    }

    /// Browsers send no `Sec-Fetch-Site` to an address of the local network.
    @Test(arguments: ["/.lp?start=t&ns=a", "/a.json?callback=f", "/a.json?print=silent&c%61llback=f"])
    func scriptsOfOtherPagesAreNotServedWithoutMetadata(_ path: String) {
        let host = "192.168.1.5:9000"
        let agent = ["user-agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"]
        func refusal(_ fields: [String: String]) -> String? { policy.refusal(head(host, fields, path: path)) }
        #expect(refusal(agent) != nil)
        #expect(refusal(agent.merging(["referer": "https://evil.example/page"]) { $1 }) != nil)
        #expect(refusal(["referer": "https://evil.example/page"]) != nil)
        // The developer's own pages.
        for page in ["http://localhost:3000/", "http://192.168.1.5:3000/a?b", "https://app.example:3000/"] {
            #expect(refusal(agent.merging(["referer": page]) { $1 }) == nil)
        }
        // Programs are not pages.
        #expect(refusal(["user-agent": "curl/8"]) == nil)
        #expect(refusal([:]) == nil)
        // Opening an address in a tab runs no script of the page that has the link.
        let link = agent.merging(["referer": "https://evil.example/page"]) { $1 }
        #expect(policy.refusal(head(host, link, path: "/a.json?print=pretty")) == nil)
    }
}
