/**
 * Server signals of the category `connection`: what the address tells that a request came from. An
 * address never says who uses it, so each description says whom the signal can hit that is honest.
 */
import type { SignalDefinition } from '#shared/core/signals/signal-definition.ts'

export const connectionSignals = {
  country: {
    type: 'string',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'WEIGHED_ORIGIN',
    description:
      'Country of the address, as two capital letters; context. A VPN, a relay or a foreign SIM ' +
      'shows the country of its exit.',
    sources: [],
  },
  asn: {
    type: 'string',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'WEIGHED_ORIGIN',
    description:
      'Number of the network’s operator, as `AS64500`; context. One operator has millions of ' +
      'customers.',
    sources: [],
  },
  hosting: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'medium',
    flag: 'HOSTING_NETWORK',
    description:
      'The address belongs to a data centre. Also hits company networks and VPNs that leave there, ' +
      'and cloud desktops.',
    sources: ['Fingerprint', 'tirreno'],
  },
  vpn: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'low',
    flag: 'VPN_SUSPECTED',
    description:
      'The address is the exit of a VPN. Hits everyone who uses one for privacy or for work.',
    sources: ['Fingerprint', 'tirreno'],
  },
  tor: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'medium',
    flag: 'TOR_EXIT',
    description: 'The address is a Tor exit. Hits people who need Tor to reach the network at all.',
    sources: ['Fingerprint', 'tirreno'],
  },
  proxy: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'medium',
    flag: 'PROXY_SUSPECTED',
    description:
      'The address is a known proxy. Also hits families whose phone or router is misused as one.',
    sources: ['Fingerprint', 'tirreno'],
  },
  relay: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'informational',
    flag: 'VPN_SUSPECTED',
    description:
      'The address is a privacy relay such as Apple’s. Hits everyone who switched it on; such a ' +
      'relay lets nobody choose a country.',
    sources: ['Fingerprint'],
  },
  country_mismatch: {
    type: 'boolean',
    platforms: ['android', 'ios'],
    grade: 'low',
    flag: 'COUNTRY_MISMATCH',
    description:
      'The country of the address is neither that of the SIM nor that of the time zone. Hits ' +
      'users of a VPN, people near a border, and travellers whose phone keeps its time zone.',
    sources: ['Fingerprint'],
  },
} satisfies Record<string, SignalDefinition>
