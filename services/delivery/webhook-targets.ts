/**
 * Where a webhook's requests go: its URL judged by the rules and parsed, remembered because the
 * verdict on a text never changes. The address is judged when it is dialled, every time.
 */
import { checkWebhookUrl } from '#shared/core/outbound-address.ts'
import type { CurrentWebhook } from '#shared/io/delivery-store.ts'
import { OutboundError, type OutboundTarget } from '#shared/io/outbound-http.ts'

export type FindTarget = (
  tenantId: string,
  url: string,
  environment: CurrentWebhook['environment'],
) => OutboundTarget

/** Webhooks that are remembered, at about a kilobyte each. */
const targetsMax = 10_000

/**
 * @param allowPrivate whether sandbox tenants may use http and private addresses
 * @returns a function that throws OutboundError when the rules refuse the URL: it was accepted when
 *   it was saved, and the installation's rules have changed since
 */
export function createFindTarget(allowPrivate: boolean): FindTarget {
  const known = new Map<string, OutboundTarget>()
  return (tenantId, url, environment) => {
    const key = `${environment} ${tenantId} ${url}`
    const found = known.get(key)
    if (found !== undefined) return found
    const rules = { environment, allowPrivate }
    const verdict = checkWebhookUrl(url, rules)
    if (!verdict.ok) {
      throw new OutboundError('refused_address', `the URL is refused: ${verdict.why}`)
    }
    const target = { url: new URL(verdict.url), rules, owner: tenantId }
    if (known.size >= targetsMax) known.clear()
    known.set(key, target)
    return target
  }
}
