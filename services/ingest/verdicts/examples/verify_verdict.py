"""Verifies the verdict token on stdin: KEYS_URL, TENANT, AUDIENCE, NONCE. Needs PyJWT[crypto]."""

import json
import os
import sys

import jwt

keys = jwt.PyJWKClient(os.environ["KEYS_URL"], lifespan=300)  # one for the process


def verify_verdict(token: str, tenant: str, audience: str, nonce: str) -> dict:
    key = keys.get_signing_key_from_jwt(token)
    verdict = jwt.decode(token, key.key, algorithms=["ES256"], audience=tenant, leeway=60)
    if (verdict["purpose"], verdict["nonce"]) != (audience, nonce):
        raise jwt.InvalidTokenError("it answers another question")
    return verdict


if __name__ == "__main__":
    asked = (os.environ[name] for name in ("TENANT", "AUDIENCE", "NONCE"))
    print(json.dumps(verify_verdict(sys.stdin.read().strip(), *asked)))
