<?php
// Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET.

// $raw_body is file_get_contents('php://input'), or $request->getContent() in Laravel and Symfony.
function is_genuine(string $raw_body, ?string $signature, string $secret): bool
{
    $expected = base64_encode(hash_hmac('sha256', $raw_body, $secret, true));
    return hash_equals($expected, $signature ?? '');
}

$genuine = is_genuine(stream_get_contents(STDIN), $argv[1], getenv('WEBHOOK_SECRET'));
echo $genuine ? 'genuine' : 'forged', PHP_EOL;
exit($genuine ? 0 : 1);
