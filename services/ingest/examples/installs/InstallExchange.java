// Registers an install and sends the submission on stdin with its key: INGEST_URL, HMAC_SECRET,
// TENANT_ID, DEVICE_ID, and INSTALL_FILE where the install is kept. `java InstallExchange.java`
// A JVM has no attestation, so the evidence is `none`; InstallExchange.kt makes Android's.

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class InstallExchange {
  static final String INGEST_URL = System.getenv("INGEST_URL");
  static final HttpClient HTTP = HttpClient.newHttpClient();

  record Install(String token, String key, Instant expiresAt) {}

  static String sign(byte[] body, String secret) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
    return Base64.getEncoder().encodeToString(mac.doFinal(body));
  }

  /** A text of an answer. These have no escapes; use the JSON library of your app. */
  static String read(String json, String name) {
    Matcher matcher = Pattern.compile("\"" + name + "\"\\s*:\\s*\"([^\"]*)\"").matcher(json);
    if (!matcher.find()) throw new IllegalStateException("no " + name + " in " + json);
    return matcher.group(1);
  }

  static HttpRequest.Builder request(String path) {
    return HttpRequest.newBuilder(URI.create(INGEST_URL + path)).timeout(Duration.ofSeconds(15));
  }

  static HttpResponse<String> post(String path, byte[] body, String secret, String token)
      throws Exception {
    HttpRequest.Builder request =
        request(path)
            .header("Content-Type", "application/json")
            .header("X-Service-Signature", sign(body, secret))
            .POST(HttpRequest.BodyPublishers.ofByteArray(body));
    if (token != null) request.header("X-Service-Install", token);
    return HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  static String fetchChallenge() throws Exception {
    HttpRequest get = request("/v1/rasp/challenge").GET().build();
    String answer = HTTP.send(get, HttpResponse.BodyHandlers.ofString()).body();
    return read(answer, "challenge");
  }

  static String makeEvidence(String challenge) {
    return "{\"provider\":\"none\"}";
  }

  /** The secret is on your backend: an app sends challenge and evidence there, and gets this. */
  static Install register() throws Exception {
    String challenge = fetchChallenge();
    String body =
        String.format(
            "{\"tenant_id\":\"%s\",\"device_id\":\"%s\",\"challenge\":\"%s\",\"evidence\":%s}",
            System.getenv("TENANT_ID"),
            System.getenv("DEVICE_ID"),
            challenge,
            makeEvidence(challenge));
    byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
    HttpResponse<String> answer =
        post("/v1/rasp/installs", bytes, System.getenv("HMAC_SECRET"), null);
    if (answer.statusCode() != 200) throw new IllegalStateException(answer.body());
    String json = answer.body();
    Instant expiresAt = Instant.parse(read(json, "expires_at"));
    return new Install(read(json, "install_token"), read(json, "install_key"), expiresAt);
  }

  /** Registers, and keeps the install where this app alone can read it. */
  static Install renew(Path file) throws Exception {
    Install install = register();
    if (!Files.exists(file)) {
      var ownerOnly = PosixFilePermissions.fromString("rw-------");
      Files.createFile(file, PosixFilePermissions.asFileAttribute(ownerOnly));
    }
    Files.write(file, List.of(install.token, install.key, install.expiresAt.toString()));
    return install;
  }

  static Install load(Path file) throws Exception {
    if (!Files.exists(file)) return null;
    List<String> lines = Files.readAllLines(file);
    return new Install(lines.get(0), lines.get(1), Instant.parse(lines.get(2)));
  }

  static HttpResponse<String> send(byte[] body, Install install) throws Exception {
    return post("/v1/rasp/ingest", body, install.key, install.token);
  }

  public static void main(String[] args) throws Exception {
    byte[] body = System.in.readAllBytes();
    Path file = Path.of(System.getenv("INSTALL_FILE"));
    Install install = load(file);
    Instant soon = Instant.now().plus(Duration.ofDays(1));
    if (install == null || install.expiresAt.isBefore(soon)) install = renew(file);
    // After 429, 503 or a network fault send the same bytes again.
    HttpResponse<String> answer = send(body, install);
    // Refused: register once more. Refused again: wait a minute before the next registration.
    if (answer.statusCode() == 401) answer = send(body, renew(file));
    System.out.println(answer.statusCode() + " " + answer.body());
    System.exit(answer.statusCode() == 200 ? 0 : 1);
  }
}
