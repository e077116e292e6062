// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs the package jose.
import 'dart:convert';
import 'dart:io';

import 'package:jose/jose.dart';

final keys = JsonWebKeyStore()..addKeySetUrl(Uri.parse(Platform.environment['KEYS_URL']!));

Future<JsonWebTokenClaims> verifyVerdict(
    String token, String tenant, String audience, String nonce) async {
  final jwt = await JsonWebToken.decodeAndVerify(token, keys, allowedArguments: ['ES256']);
  final faults = jwt.claims.validate(expiryTolerance: const Duration(minutes: 1), clientId: tenant);
  final asked = jwt.claims['purpose'] == audience && jwt.claims['nonce'] == nonce;
  if (faults.isEmpty && asked && jwt.claims.expiry != null) return jwt.claims;
  throw StateError('it is expired, or answers another question');
}

Future<void> main() async {
  final env = Platform.environment;
  final token = (await stdin.transform(utf8.decoder).join()).trim();
  final verdict = await verifyVerdict(token, env['TENANT']!, env['AUDIENCE']!, env['NONCE']!);
  stdout.writeln(jsonEncode(verdict.toJson()));
}
