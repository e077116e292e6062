<?php
// Receives the webhooks of TENANT at WEBHOOK_PATH:
// WEBHOOK_SECRET=whsec_... php -S 127.0.0.1:WEBHOOK_PORT receive.php

function is_genuine(string $body): bool
{
    $key = base64_decode(preg_replace('/^whsec_/', '', getenv('WEBHOOK_SECRET')));
    $id = $_SERVER['HTTP_WEBHOOK_ID'] ?? '';
    $at = $_SERVER['HTTP_WEBHOOK_TIMESTAMP'] ?? '';
    if (!ctype_digit($at) || abs(time() - (int) $at) > 300) {
        return false;
    }
    $digest = hash_hmac('sha256', "$id.$at.$body", $key, true);
    $expected = 'v1,' . base64_encode($digest);
    foreach (explode(' ', $_SERVER['HTTP_WEBHOOK_SIGNATURE'] ?? '') as $text) {
        if (hash_equals($expected, $text)) {
            return true;
        }
    }
    return false;
}

$body = file_get_contents('php://input'); // the raw bytes, before any parser
if ($_SERVER['REQUEST_URI'] !== 'WEBHOOK_PATH') {
    http_response_code(404);
    return;
}
if (!is_genuine($body)) {
    http_response_code(401);
    return;
}
// Store it under this id in a table with a unique key, then answer: it can arrive again.
$id = $_SERVER['HTTP_WEBHOOK_ID'];
error_log("$id " . json_decode($body)->alert_id);
http_response_code(204);
