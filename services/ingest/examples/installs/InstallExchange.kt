// The exchange of an attested install on Android 9 (API 28) and newer: challenge, attested key,
// registration, sending, renewal. Call it off the main thread.

import android.content.Context
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import android.util.Base64
import java.net.HttpURLConnection
import java.net.URL
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.Signature
import java.security.spec.ECGenParameterSpec
import java.time.Duration
import java.time.Instant
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import org.json.JSONArray
import org.json.JSONObject

data class Install(val token: String, val key: String, val expiresAt: Instant)

data class Answer(val status: Int, val body: String)

/**
 * @param register posts challenge and evidence to your backend, in the session of the user. The
 *   backend has the HMAC secret: it adds tenant_id, device_id, app and device_model (Build.MODEL),
 *   signs, posts to /v1/rasp/installs, and returns the answer.
 */
class InstallExchange(
    context: Context,
    private val ingestUrl: String,
    private val register: (challenge: String, evidence: JSONObject) -> JSONObject,
) {
    private val alias = "device-intelligence-install"
    // A file of the app alone. Exclude it from backups (android:dataExtractionRules).
    private val kept = context.getSharedPreferences(alias, Context.MODE_PRIVATE)

    /** Sends a submission. A 401 means "not scored", never "blocked". */
    fun send(body: ByteArray, isFirstOfSession: Boolean): Answer {
        val install = current()
        val answer = post(body, install, isFirstOfSession)
        if (answer.status != 401 || !mayRenew()) return answer
        // Refused: a new key, a new token, the same bytes.
        return post(body, replace(install), isFirstOfSession)
    }

    private fun current(): Install {
        val install = load()
        val soon = Instant.now() + Duration.ofDays(1)
        if (install == null || install.expiresAt.isBefore(soon)) return replace(install)
        return install
    }

    /** Threads that find the same install at its end share one registration. */
    @Synchronized
    private fun replace(old: Install?): Install {
        load()?.let { if (it != old) return it }
        val challenge = JSONObject(get("/v1/rasp/challenge")).getString("challenge")
        val answer = register(challenge, makeEvidence(challenge))
        kept.edit()
            .putString("token", answer.getString("install_token"))
            .putString("key", answer.getString("install_key"))
            .putString("expires_at", answer.getString("expires_at"))
            .apply()
        return load()!!
    }

    private fun load(): Install? {
        val token = kept.getString("token", null) ?: return null
        val expiresAt = Instant.parse(kept.getString("expires_at", null))
        return Install(token, kept.getString("key", null)!!, expiresAt)
    }

    /** At most one renewal a minute after refusals. */
    private fun mayRenew(): Boolean {
        val now = System.currentTimeMillis()
        if (now - kept.getLong("renewed_at", 0) < 60_000) return false
        kept.edit().putLong("renewed_at", now).apply()
        return true
    }

    /** A new key in the secure hardware, and the certificates that say so. */
    private fun makeEvidence(challenge: String): JSONObject {
        val bytes = Base64.decode(challenge, Base64.URL_SAFE)
        try {
            makeKey(bytes, isStrongBox = true)
        } catch (_: StrongBoxUnavailableException) {
            makeKey(bytes, isStrongBox = false)
        }
        val certificates = keyStore().getCertificateChain(alias)
        val chain = certificates.map { Base64.encodeToString(it.encoded, Base64.NO_WRAP) }
        return JSONObject().put("provider", "key_attestation").put("chain", JSONArray(chain))
    }

    private fun makeKey(challenge: ByteArray, isStrongBox: Boolean) {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(challenge)
            .setIsStrongBoxBacked(isStrongBox)
            .build()
        val generator = KeyPairGenerator.getInstance("EC", "AndroidKeyStore")
        generator.initialize(spec)
        generator.generateKeyPair()
    }

    private fun keyStore() = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }

    /** A signature of the attested key over the body: proof that this phone made it. */
    private fun proveBody(body: ByteArray): String {
        val signature = Signature.getInstance("SHA256withECDSA")
        signature.initSign(keyStore().getKey(alias, null) as PrivateKey)
        signature.update(body)
        return Base64.encodeToString(signature.sign(), Base64.NO_WRAP)
    }

    private fun signBody(body: ByteArray, installKey: String): String {
        val mac = Mac.getInstance("HmacSHA256")
        mac.init(SecretKeySpec(installKey.toByteArray(), "HmacSHA256"))
        return Base64.encodeToString(mac.doFinal(body), Base64.NO_WRAP)
    }

    private fun post(body: ByteArray, install: Install, hasProof: Boolean): Answer {
        val connection = open("/v1/rasp/ingest")
        connection.requestMethod = "POST"
        connection.doOutput = true
        connection.setRequestProperty("Content-Type", "application/json")
        connection.setRequestProperty("X-Service-Install", install.token)
        connection.setRequestProperty("X-Service-Signature", signBody(body, install.key))
        if (hasProof) connection.setRequestProperty("X-Service-Attestation", proveBody(body))
        // After 429, 503 or a network fault send the same bytes again.
        connection.outputStream.use { it.write(body) }
        return Answer(connection.responseCode, readText(connection))
    }

    private fun get(path: String): String = readText(open(path))

    private fun open(path: String): HttpURLConnection {
        val connection = URL(ingestUrl + path).openConnection() as HttpURLConnection
        connection.connectTimeout = 15_000
        connection.readTimeout = 15_000
        return connection
    }

    private fun readText(connection: HttpURLConnection): String {
        val isRefused = connection.responseCode >= 400
        val stream = if (isRefused) connection.errorStream else connection.inputStream
        return stream?.use { it.readBytes().decodeToString() } ?: ""
    }
}
