/**
 * Makes what a registration leaves: its element of the stream, and the answer with token and key.
 */
import { hash } from 'node:crypto'
import { installTokenMs } from '#shared/core/base/limits/installs.ts'
import type { VerifiedEvidence } from '#shared/core/installs/evidence-signals.ts'
import type { InstallRequest } from '#shared/core/installs/install-request.ts'
import {
  type InstallRoot,
  makeInstallToken,
  toDeviceHash,
  toTokenId,
} from '#shared/core/installs/install-token.ts'
import { encodeRegistration } from '#shared/core/installs/registration.ts'
import { encodeRegistrationHead } from '#shared/core/telemetry/event-batch.ts'

/** @param root the one of the tenant that makes tokens */
export function makeRegistration(
  request: InstallRequest,
  evidence: VerifiedEvidence,
  root: InstallRoot,
): { head: string; body: Buffer; eventId: string; answer: string } {
  const { tenantId, deviceId, app, receivedAtMs } = request
  const { provider, verdict, reason, level, publicKey } = evidence
  const expiresAtMs = receivedAtMs + installTokenMs
  const { token, key } = makeInstallToken(root, {
    t: tenantId,
    d: toDeviceHash(deviceId),
    a: app?.id ?? null,
    p: provider,
    v: verdict,
    l: level,
    r: reason,
    k: publicKey,
    s: evidence.serials,
    f: evidence.signals,
    iat: receivedAtMs,
    exp: expiresAtMs,
  })
  const { id: eventId, body } = encodeRegistration({
    tenant_id: tenantId,
    device_id: deviceId,
    platform: app?.platform ?? null,
    app_id: app?.id ?? null,
    provider,
    verdict,
    reason,
    level,
    attested_key:
      publicKey === null ? null : hash('sha256', Buffer.from(publicKey, 'base64'), 'base64url'),
    issuers: evidence.issuers,
    remotely_provisioned: evidence.remotelyProvisioned,
    device_model: evidence.deviceModel === '' ? request.deviceModel : evidence.deviceModel,
    root_epoch: root.epoch,
    token_id: toTokenId(token),
    expires_at: expiresAtMs,
  })
  const header = {
    registration: true as const,
    event_id: eventId,
    tenant_id: tenantId,
    received_at: receivedAtMs,
  }
  const answer = JSON.stringify({
    status: 'registered',
    install_token: token,
    install_key: key,
    expires_at: new Date(expiresAtMs).toISOString(),
    attestation: { provider, verdict, reason, level },
  })
  return { head: encodeRegistrationHead(header, body.length), body, eventId, answer }
}
