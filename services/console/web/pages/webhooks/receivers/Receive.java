// Receives the webhooks of TENANT: WEBHOOK_SECRET=whsec_... java Receive.java
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receive {
    static final byte[] KEY =
        Base64.getDecoder().decode(System.getenv("WEBHOOK_SECRET").replaceFirst("^whsec_", ""));
    // Yours is a table with a unique key.
    static final Set<String> seen = ConcurrentHashMap.newKeySet();

    static boolean isGenuine(HttpExchange exchange, byte[] body) throws Exception {
        String id = header(exchange, "webhook-id");
        String at = header(exchange, "webhook-timestamp");
        if (!at.matches("[0-9]{1,12}")) return false;
        if (Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(at)) > 300) return false;
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(KEY, "HmacSHA256"));
        mac.update((id + "." + at + ".").getBytes(StandardCharsets.UTF_8));
        String digest = Base64.getEncoder().encodeToString(mac.doFinal(body));
        byte[] expected = ("v1," + digest).getBytes(StandardCharsets.UTF_8);
        for (String text : header(exchange, "webhook-signature").split(" ")) {
            byte[] given = text.getBytes(StandardCharsets.UTF_8);
            if (MessageDigest.isEqual(given, expected)) return true;
        }
        return false;
    }

    static String header(HttpExchange exchange, String name) {
        String value = exchange.getRequestHeaders().getFirst(name);
        return value == null ? "" : value;
    }

    static void receive(HttpExchange exchange) {
        try (exchange) {
            byte[] body = exchange.getRequestBody().readAllBytes(); // the raw bytes
            boolean genuine = isGenuine(exchange, body);
            exchange.sendResponseHeaders(genuine ? 204 : 401, -1);
            if (genuine && seen.add(header(exchange, "webhook-id"))) {
                System.out.println(new String(body, StandardCharsets.UTF_8));
            }
        } catch (Exception error) {
            error.printStackTrace(); // no answer: the delivery is tried again
        }
    }

    public static void main(String[] parameters) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", WEBHOOK_PORT), 0);
        server.createContext("WEBHOOK_PATH", Receive::receive);
        server.start();
    }
}
