/**
 * Submissions as raw bytes, and hostile requests with their expected statuses.
 */
import { signBody } from '#shared/core/telemetry/signature.ts'

export type HostileCase = {
  family: string
  name: string
  request: Buffer
  /** The correct statuses; 0 is a connection that ends without a response. */
  expected: readonly number[]
  /** The path that a 400 must name. */
  path?: string
}

export type Signer = { tenantId: string; secret: string }

export const ingestHead = 'POST /v1/rasp/ingest HTTP/1.1\r\nHost: edge\r\n'
export const jsonType = 'Content-Type: application/json\r\n'

/** A complete valid request. @param signature null omits the header */
export function toRequest(body: Buffer | string, signature: string | null, more = ''): Buffer {
  const bytes = Buffer.from(body)
  const line = signature === null ? '' : `X-Service-Signature: ${signature}\r\n`
  const head = `${ingestHead}${jsonType}${line}${more}Content-Length: ${bytes.length}\r\n\r\n`
  // Latin-1: a flipped bit of a header is one byte.
  return Buffer.concat([Buffer.from(head, 'latin1'), bytes])
}

/** The same, correctly signed. */
export function toSigned(body: Buffer | string, { secret }: Pick<Signer, 'secret'>): Buffer {
  return toRequest(body, signBody(Buffer.from(body), secret))
}

let bodies = 0

/**
 * A valid submission with every optional field and signals of every type, different each time and
 * always of the same length for tenants with ids of one length.
 */
export function validBody(tenantId: string) {
  const n = String(++bodies).padStart(9, '0')
  return {
    tenant_id: tenantId,
    device_id: `device-${n}`,
    session_id: `session-${n}`,
    user_id: `user-${n}`,
    account_id: `account-${n}`,
    occurred_at: '2026-02-28T23:59:59.123Z',
    sdk_meta: { sdk_version: '4.2.0', platform: 'android', batch_type: 'session_start' },
    scorer: { rasp_score: 12.5, rasp_action: 'ALLOW', rasp_flags: ['CLIENT_A', 'CLIENT_B'] },
    signals: {
      root: { su_binary: false, magisk_detected: false },
      emulator: { sensor_count: 11, emulator_vendor: 'none' },
      debugger: { tracer_pid: 0, hook_framework: 'none' },
      tamper: {},
      ecosystem: { suspicious_apps_count: 0 },
      network: { vpn_active: null, proxy_address: 'none' },
    },
  }
}

/** Flips one bit. */
export function flipBit(bytes: Buffer, bit: number): Buffer {
  const flipped = Buffer.from(bytes)
  flipped[bit >> 3]! ^= 1 << (bit & 7)
  return flipped
}
