// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET. Needs
// package:crypto.

import 'dart:convert';
import 'dart:io';

import 'package:crypto/crypto.dart';

/// [rawBody] is `request.read()` in shelf, collected, before any decoder.
bool isGenuine(List<int> rawBody, String? signature, String secret) {
  final code = Hmac(sha256, utf8.encode(secret)).convert(rawBody).bytes;
  final expected = ascii.encode(base64.encode(code));
  final given = utf8.encode(signature ?? '');
  if (given.length != expected.length) return false;
  // Constant time: every byte is compared.
  var difference = 0;
  for (var at = 0; at < expected.length; at++) {
    difference |= expected[at] ^ given[at];
  }
  return difference == 0;
}

Future<void> main(List<String> arguments) async {
  final rawBody = await stdin.expand((chunk) => chunk).toList();
  final genuine = isGenuine(rawBody, arguments[0], Platform.environment['WEBHOOK_SECRET']!);
  print(genuine ? 'genuine' : 'forged');
  exitCode = genuine ? 0 : 1;
}
