/**
 * Parses a webhook URL and checks it by the rules. The result is cached, because the check of a
 * text never changes; addresses are checked at every connection.
 */
import { LRUCache } from 'lru-cache'
import { webhooksCachedMax } from '#shared/core/base/limits/deliveries.ts'
import { checkWebhookUrl, type WebhookRules } from '#shared/core/deliveries/outbound-address.ts'
import {
  OutboundError,
  type OutboundTarget,
} from '#shared/io/deliveries/outbound/outbound-client.ts'
import type { CurrentWebhook } from '#shared/io/deliveries/read-webhooks.ts'

export type FindTarget = (
  tenantId: string,
  url: string,
  environment: CurrentWebhook['environment'],
) => OutboundTarget

/**
 * @param allowed what the installation allows beside public addresses
 * @returns a function that throws OutboundError when the rules refuse the URL, which happens when
 *   the installation's rules have changed since the URL was saved
 */
export function createFindTarget(allowed: Omit<WebhookRules, 'environment'>): FindTarget {
  // One entry per tenant: a tenant that changes its URL evicts no other.
  const cache = new LRUCache<string, { url: string; target: OutboundTarget }>({
    max: webhooksCachedMax,
  })
  return (tenantId, url, environment) => {
    const found = cache.get(tenantId)
    if (found?.url === url && found.target.rules.environment === environment) return found.target
    const rules = { ...allowed, environment }
    const verdict = checkWebhookUrl(url, rules)
    if (!verdict.ok) {
      throw new OutboundError('refused_address', `the URL is refused: ${verdict.why}`)
    }
    const target = { url: new URL(verdict.url), rules, owner: tenantId }
    cache.set(tenantId, { url, target })
    return target
  }
}
