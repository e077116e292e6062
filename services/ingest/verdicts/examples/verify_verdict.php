<?php
// Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs firebase/php-jwt.
require 'vendor/autoload.php';

use Firebase\JWT\JWK;
use Firebase\JWT\JWT;

function verify_verdict(string $token, array $keySet, string $tenant, string $audience, string $nonce): object
{
    JWT::$leeway = 60;
    $verdict = JWT::decode($token, JWK::parseKeySet($keySet)); // a key counts for its own `alg` alone
    $asked = [$verdict->aud, $verdict->purpose, $verdict->nonce] === [$tenant, $audience, $nonce];
    return $asked && isset($verdict->exp) ? $verdict : throw new DomainException('another question');
}

// Keep the key set for five minutes, for example with CachedKeySet.
$keySet = json_decode(file_get_contents(getenv('KEYS_URL')), true);
$asked = [getenv('TENANT'), getenv('AUDIENCE'), getenv('NONCE')];
echo json_encode(verify_verdict(trim(stream_get_contents(STDIN)), $keySet, ...$asked)), PHP_EOL;
