/**
 * Where a webhook's requests go: its URL judged by the rules and parsed, remembered because the
 * verdict on a text never changes. The address is judged when it is dialled, every time.
 */
import { LRUCache } from 'lru-cache'
import { webhooksRememberedMax } from '#shared/core/deliveries/delivery-limits.ts'
import { checkWebhookUrl, type WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import type { CurrentWebhook } from '#shared/io/deliveries/delivery-store.ts'
import { OutboundError, type OutboundTarget } from '#shared/io/deliveries/outbound-http.ts'

export type FindTarget = (
  tenantId: string,
  url: string,
  environment: CurrentWebhook['environment'],
) => OutboundTarget

/**
 * @param allowed what the installation allows beside public addresses
 * @returns a function that throws OutboundError when the rules refuse the URL: it was accepted when
 *   it was saved, and the installation's rules have changed since
 */
export function createFindTarget(allowed: Omit<WebhookRules, 'environment'>): FindTarget {
  // One of each tenant: a tenant that changes its URL takes nobody else's place.
  const known = new LRUCache<string, { url: string; target: OutboundTarget }>({
    max: webhooksRememberedMax,
  })
  return (tenantId, url, environment) => {
    const found = known.get(tenantId)
    if (found?.url === url && found.target.rules.environment === environment) return found.target
    const rules = { ...allowed, environment }
    const verdict = checkWebhookUrl(url, rules)
    if (!verdict.ok) {
      throw new OutboundError('refused_address', `the URL is refused: ${verdict.why}`)
    }
    const target = { url: new URL(verdict.url), rules, owner: tenantId }
    known.set(tenantId, { url, target })
    return target
  }
}
