// The exchange of an attested install on iOS 15 and newer: challenge, App Attest key, registration,
// sending, renewal. The app needs the capability App Attest.

import CryptoKit
import DeviceCheck
import Foundation

struct Install: Codable {
    let token: String
    let key: String
    let expiresAt: Date
    /// Of the App Attest key; nil where the phone has none.
    let keyId: String?
}

struct Registration: Decodable {
    let install_token: String
    let install_key: String
    let expires_at: String
}

/// What the app brings along: its backend, and a place of its own.
protocol InstallHost {
    /// Posts challenge and evidence to your backend, in the session of the user. The backend has
    /// the HMAC secret: it adds tenant_id, device_id and app, signs, posts to /v1/rasp/installs,
    /// and returns the answer.
    func register(challenge: String, evidence: [String: String]) async throws -> Registration
    /// The Keychain, with kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: not in backups.
    func load() -> Install?
    func keep(_ install: Install) throws
}

actor InstallExchange {
    private let ingestUrl: URL
    private let host: InstallHost
    private var renewedAt = Date.distantPast
    private var underWay: Task<Install, Error>?

    init(ingestUrl: URL, host: InstallHost) {
        self.ingestUrl = ingestUrl
        self.host = host
    }

    /// Sends a submission. A 401 means "not scored", never "blocked".
    func send(_ body: Data, isFirstOfSession: Bool) async throws -> (Int, String) {
        let answer = try await post(body, with: try await current(), hasProof: isFirstOfSession)
        guard answer.0 == 401, Date().timeIntervalSince(renewedAt) > 60 else { return answer }
        renewedAt = Date()
        // Refused: a new key, a new token, the same bytes.
        return try await post(body, with: try await renew(), hasProof: isFirstOfSession)
    }

    private func current() async throws -> Install {
        guard let install = host.load() else { return try await renew() }
        return install.expiresAt.timeIntervalSinceNow < 86_400 ? try await renew() : install
    }

    /// Sends that wait at the same time share one registration.
    private func renew() async throws -> Install {
        let task = underWay ?? Task { try await register() }
        underWay = task
        defer { underWay = nil }
        return try await task.value
    }

    private func register() async throws -> Install {
        let challenge = try await fetchChallenge()
        let (evidence, keyId) = try await makeEvidence(for: challenge)
        let answer = try await host.register(challenge: challenge, evidence: evidence)
        let format = ISO8601DateFormatter()
        format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        let install = Install(
            token: answer.install_token,
            key: answer.install_key,
            expiresAt: format.date(from: answer.expires_at) ?? Date(),
            keyId: keyId
        )
        try host.keep(install)
        return install
    }

    private func fetchChallenge() async throws -> String {
        struct Challenge: Decodable { let challenge: String }
        let url = ingestUrl.appendingPathComponent("v1/rasp/challenge")
        let (data, _) = try await URLSession.shared.data(from: url)
        return try JSONDecoder().decode(Challenge.self, from: data).challenge
    }

    /// A new key in the Secure Enclave, and Apple's word for it. Apple asks to make few of them:
    /// one for each registration, which is one in 30 days.
    private func makeEvidence(for challenge: String) async throws -> ([String: String], String?) {
        let service = DCAppAttestService.shared
        guard service.isSupported, let bytes = decodeBase64Url(challenge) else {
            return (["provider": "none"], nil)
        }
        let keyId = try await service.generateKey()
        let hash = Data(SHA256.hash(data: bytes))
        let attestation = try await service.attestKey(keyId, clientDataHash: hash)
        let evidence = [
            "provider": "app_attest",
            "key_id": keyId,
            "attestation": attestation.base64EncodedString(),
        ]
        return (evidence, keyId)
    }

    private func post(
        _ body: Data, with install: Install, hasProof: Bool
    ) async throws -> (Int, String) {
        var request = URLRequest(url: ingestUrl.appendingPathComponent("v1/rasp/ingest"))
        let signature = signBody(body, key: install.key)
        request.httpMethod = "POST"
        request.timeoutInterval = 15
        request.httpBody = body
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        request.setValue(install.token, forHTTPHeaderField: "X-Service-Install")
        request.setValue(signature, forHTTPHeaderField: "X-Service-Signature")
        if hasProof, let keyId = install.keyId {
            // Proof that this phone made this body.
            let hash = Data(SHA256.hash(data: body))
            let service = DCAppAttestService.shared
            let proof = try await service.generateAssertion(keyId, clientDataHash: hash)
            let text = proof.base64EncodedString()
            request.setValue(text, forHTTPHeaderField: "X-Service-Attestation")
        }
        // After 429, 503 or a network fault send the same bytes again.
        let (data, response) = try await URLSession.shared.data(for: request)
        return ((response as! HTTPURLResponse).statusCode, String(decoding: data, as: UTF8.self))
    }

    private func signBody(_ body: Data, key: String) -> String {
        let key = SymmetricKey(data: Data(key.utf8))
        return Data(HMAC<SHA256>.authenticationCode(for: body, using: key)).base64EncodedString()
    }

    private func decodeBase64Url(_ text: String) -> Data? {
        let base64 = text.replacingOccurrences(of: "-", with: "+")
            .replacingOccurrences(of: "_", with: "/")
        let padding = String(repeating: "=", count: (4 - base64.count % 4) % 4)
        return Data(base64Encoded: base64 + padding)
    }
}
