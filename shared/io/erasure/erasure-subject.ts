/**
 * The subject of an erasure: one device, or one user or account, of one tenant. What is written
 * about it, in receipts, the audit log and ClickHouse's mutations, names it by hashes alone.
 */
import { hash } from 'node:crypto'
import { isObject } from '#shared/core/telemetry/submission.ts'

export type ErasureSubject = {
  tenantId: string
  /** `user` means a user or an account: whatever `users_seen_on` collects. */
  kind: 'device' | 'user'
  id: string
}

/** The SHA-256 of the id, in hex. */
export function toSubjectSha256({ id }: ErasureSubject): string {
  return hash('sha256', id)
}

/**
 * Whether an element of a batch message, or of a dead letter, is about the subject. It need not be
 * a valid event: invalid events name people too.
 */
export function isOfSubject(element: unknown, { tenantId, kind, id }: ErasureSubject): boolean {
  if (!isObject(element)) return false
  const body = isObject(element.body) ? element.body : {}
  if (element.tenant_id !== tenantId && body.tenant_id !== tenantId) return false
  if (kind === 'device') return body.device_id === id
  return body.user_id === id || body.account_id === id
}
