// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.

import java.security.MessageDigest
import java.util.Base64
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec
import kotlin.system.exitProcess

/** [rawBody] is `call.receive<ByteArray>()` in Ktor and a `@RequestBody ByteArray` in Spring. */
fun isGenuine(rawBody: ByteArray, signature: String?, secret: String): Boolean {
    if (signature == null) return false
    val mac = Mac.getInstance("HmacSHA256")
    mac.init(SecretKeySpec(secret.toByteArray(), "HmacSHA256"))
    val expected = Base64.getEncoder().encode(mac.doFinal(rawBody))
    // Constant time.
    return MessageDigest.isEqual(expected, signature.toByteArray())
}

fun main(args: Array<String>) {
    val genuine = isGenuine(System.`in`.readBytes(), args[0], System.getenv("WEBHOOK_SECRET"))
    println(if (genuine) "genuine" else "forged")
    exitProcess(if (genuine) 0 else 1)
}
