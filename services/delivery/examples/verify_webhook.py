"""Verifies a webhook: raw body on stdin, X-Service-Signature as argument, WEBHOOK_SECRET."""

import base64
import hashlib
import hmac
import os
import sys


def is_genuine(raw_body: bytes, signature: str | None, secret: str) -> bool:
    # raw_body is request.get_data() in Flask, request.body in Django, await request.body() in FastAPI.
    digest = hmac.new(secret.encode(), raw_body, hashlib.sha256).digest()
    expected = base64.b64encode(digest)
    return hmac.compare_digest(expected, (signature or "").encode())


if __name__ == "__main__":
    body = sys.stdin.buffer.read()
    genuine = is_genuine(body, sys.argv[1], os.environ["WEBHOOK_SECRET"])
    print("genuine" if genuine else "forged")
    sys.exit(0 if genuine else 1)
