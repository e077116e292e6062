/** What the address of a client weighs, in every preset. */
import type { CategoryPolicy } from '#shared/core/policies/policy.ts'

/**
 * Small weights, and together less than half a REVIEW: exits of companies, VPNs for privacy and Tor
 * are used by honest people, so an address makes a doubt heavier and is none of its own.
 */
export const connectionWeights: CategoryPolicy = {
  cap: 12,
  signals: {
    tor: 12,
    proxy: 10,
    hosting: 8,
    vpn: 4,
    relay: 1,
    country: 0,
    asn: 0,
    country_mismatch: 2,
  },
}
