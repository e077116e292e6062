// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. iOS 15 or macOS 12; on Linux
// `import Crypto` of swift-crypto and `FoundationNetworking` instead.

import CryptoKit
import Foundation

func signBody(_ body: Data, secret: String) -> String {
    let key = SymmetricKey(data: Data(secret.utf8))
    return Data(HMAC<SHA256>.authenticationCode(for: body, using: key)).base64EncodedString()
}

func send(_ body: Data, to ingestUrl: URL, secret: String) async throws -> (Int, String) {
    // Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
    var request = URLRequest(url: ingestUrl.appendingPathComponent("v1/rasp/ingest"))
    request.httpMethod = "POST"
    request.timeoutInterval = 15
    request.setValue("application/json", forHTTPHeaderField: "Content-Type")
    request.setValue(signBody(body, secret: secret), forHTTPHeaderField: "X-Service-Signature")
    request.httpBody = body
    let (data, response) = try await URLSession.shared.data(for: request)
    return ((response as! HTTPURLResponse).statusCode, String(decoding: data, as: UTF8.self))
}

let environment = ProcessInfo.processInfo.environment
let (status, text) = try await send(
    FileHandle.standardInput.readDataToEndOfFile(),
    to: URL(string: environment["INGEST_URL"]!)!,
    secret: environment["HMAC_SECRET"]!
)
print(status, text)
exit(status == 200 ? 0 : 1)
