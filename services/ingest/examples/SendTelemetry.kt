// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. On Android, `signBody` is the
// same and the request is made with your HTTP client.

import java.net.URI
import java.net.http.HttpClient
import java.net.http.HttpRequest
import java.net.http.HttpResponse
import java.time.Duration
import java.util.Base64
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import kotlin.system.exitProcess

fun signBody(body: ByteArray, secret: String): String {
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(SecretKeySpec(secret.toByteArray(), "HmacSHA256"))
    return Base64.getEncoder().encodeToString(mac.doFinal(body))
}

fun main() {
    val body = System.`in`.readBytes()
    // Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
    val request = HttpRequest.newBuilder(URI(System.getenv("INGEST_URL") + "/v1/rasp/ingest"))
        .timeout(Duration.ofSeconds(15))
        .header("Content-Type", "application/json")
        .header("X-Service-Signature", signBody(body, System.getenv("HMAC_SECRET")))
        .POST(HttpRequest.BodyPublishers.ofByteArray(body))
        .build()
    val answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString())
    println("${answer.statusCode()} ${answer.body()}")
    exitProcess(if (answer.statusCode() == 200) 0 else 1)
}
