// The exchange of an attested install in Flutter: challenge, evidence, registration, sending,
// renewal. Needs package:crypto, package:http and package:flutter/services.dart; the two calls of
// the platform are InstallExchange.kt and install_exchange.swift behind a MethodChannel.

import 'dart:convert';

import 'package:crypto/crypto.dart';
import 'package:flutter/services.dart';
import 'package:http/http.dart' as http;

class Install {
  Install(this.token, this.key, this.expiresAt);

  Install.fromJson(Map<String, dynamic> json)
      : token = json['install_token'] as String,
        key = json['install_key'] as String,
        expiresAt = DateTime.parse(json['expires_at'] as String);

  final String token;
  final String key;
  final DateTime expiresAt;
}

/// What the app brings along: its backend, and a place of its own.
abstract class InstallHost {
  /// Posts challenge and evidence to your backend, in the session of the user. The backend has the
  /// HMAC secret: it adds tenant_id, device_id and app, signs, posts to /v1/rasp/installs, and
  /// returns the answer.
  Future<Map<String, dynamic>> register(String challenge, Map<String, dynamic> evidence);

  /// Keychain or KeyStore, such as package:flutter_secure_storage. Not in backups.
  Future<Install?> load();
  Future<void> keep(Install install);
}

class InstallExchange {
  InstallExchange({required this.ingestUrl, required this.host});

  static const _platform = MethodChannel('device-intelligence/attestation');

  final String ingestUrl;
  final InstallHost host;
  Future<Install>? _underWay;
  DateTime _renewedAt = DateTime.fromMillisecondsSinceEpoch(0);

  /// Sends a submission. A 401 means "not scored", never "blocked".
  Future<http.Response> send(List<int> body, {required bool isFirstOfSession}) async {
    final answer = await _post(body, await _current(), hasProof: isFirstOfSession);
    final isPaused = DateTime.now().difference(_renewedAt) < const Duration(minutes: 1);
    if (answer.statusCode != 401 || isPaused) return answer;
    _renewedAt = DateTime.now();
    // Refused: a new key, a new token, the same bytes.
    return _post(body, await _renew(), hasProof: isFirstOfSession);
  }

  Future<Install> _current() async {
    final install = await host.load();
    final soon = DateTime.now().add(const Duration(days: 1));
    return install == null || install.expiresAt.isBefore(soon) ? _renew() : install;
  }

  /// Sends that wait at the same time share one registration.
  Future<Install> _renew() =>
      _underWay ??= _register().whenComplete(() => _underWay = null);

  Future<Install> _register() async {
    final answer = await http
        .get(Uri.parse('$ingestUrl/v1/rasp/challenge'))
        .timeout(const Duration(seconds: 15));
    final challenge = (jsonDecode(answer.body) as Map<String, dynamic>)['challenge'] as String;
    final install = Install.fromJson(await host.register(challenge, await _evidence(challenge)));
    await host.keep(install);
    return install;
  }

  /// `{provider, chain}` on Android, `{provider, key_id, attestation}` on iOS.
  Future<Map<String, dynamic>> _evidence(String challenge) async {
    final bytes = base64Url.decode(base64Url.normalize(challenge));
    final evidence = await _platform.invokeMapMethod<String, dynamic>('makeEvidence', bytes);
    return evidence ?? {'provider': 'none'};
  }

  Future<http.Response> _post(List<int> body, Install install, {required bool hasProof}) async {
    final mac = Hmac(sha256, utf8.encode(install.key)).convert(body);
    final headers = {
      'Content-Type': 'application/json',
      'X-Service-Install': install.token,
      'X-Service-Signature': base64.encode(mac.bytes),
    };
    if (hasProof) {
      // A signature of the attested key over the body, or an assertion for its SHA-256.
      final proof = await _platform.invokeMethod<String>('proveBody', Uint8List.fromList(body));
      if (proof != null) headers['X-Service-Attestation'] = proof;
    }
    // After 429, 503 or a network fault send the same bytes again.
    return http
        .post(Uri.parse('$ingestUrl/v1/rasp/ingest'), headers: headers, body: body)
        .timeout(const Duration(seconds: 15));
  }
}
