// Signs the submission on stdin and sends it: HMAC_SECRET, INGEST_URL. Needs package:crypto and
// package:http; in Flutter, `signBody` and `send` are the same.

import 'dart:convert';
import 'dart:io';

import 'package:crypto/crypto.dart';
import 'package:http/http.dart' as http;

String signBody(List<int> body, String secret) =>
    base64.encode(Hmac(sha256, utf8.encode(secret)).convert(body).bytes);

Future<http.Response> send(List<int> body, {required String ingestUrl, required String secret}) {
  // Sign the bytes that are sent. After 429, 503 or a network fault send the same bytes again.
  return http.post(
    Uri.parse('$ingestUrl/v1/rasp/ingest'),
    headers: {
      'Content-Type': 'application/json',
      'X-Service-Signature': signBody(body, secret),
    },
    body: body,
  ).timeout(const Duration(seconds: 15));
}

Future<void> main() async {
  final body = await stdin.expand((chunk) => chunk).toList();
  final environment = Platform.environment;
  final answer = await send(
    body,
    ingestUrl: environment['INGEST_URL']!,
    secret: environment['HMAC_SECRET']!,
  );
  print('${answer.statusCode} ${answer.body}');
  exitCode = answer.statusCode == 200 ? 0 : 1;
}
