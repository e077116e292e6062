// Sessions of a tenant with what they turned out to be, for the pages that judge a policy by it.

import { admin } from '../http/tenant-client.ts'
import { until } from '../process/until.ts'
import type { Story } from './story.ts'

const rooted = { root: { su_binary: true, magisk_detected: true } }
const hidden = { root: { magisk_detected: true } }

/** Of the rooted sessions those with one signal of root alone. */
const onlyHidden = new Set(['rooted-0', 'rooted-1', 'rooted-4'])

/** How many sessions are rooted. */
export const rootedCount = 6

/**
 * The rooted ones have an alert, the calm ones none. Both honest sessions with an alert are of one
 * user.
 */
const labelled = [
  ...many('rooted', 0, 4, { label: 'chargeback', amount: '100.10', currency: 'EUR' }),
  ...many('rooted', 4, rootedCount, { label: 'legitimate' }),
  ...many('calm', 0, 6, { label: 'chargeback', amount: '1000.00', currency: 'EUR' }),
  ...many('calm', 6, 14, { label: 'legitimate' }),
]

function many(
  name: string,
  from: number,
  to: number,
  label: { label: string; amount?: string; currency?: string },
) {
  return Array.from({ length: to - from }, (_, at) => ({
    subject: { session_id: `${name}-${from + at}` },
    ...label,
  }))
}

/** Sends the sessions and their labels, and waits until the reports have them. */
export async function sendLabelled({ send, stack, tenant, read }: Story): Promise<void> {
  for (const { subject, label } of labelled) {
    const name = subject.session_id
    const isRooted = name.startsWith('rooted')
    await send({
      device: name,
      session: name,
      signals: isRooted ? (onlyHidden.has(name) ? hidden : rooted) : {},
      user: isRooted && label === 'legitimate' ? 'the-owner' : name,
    })
  }
  await admin(stack, 'POST', `/tenants/${tenant.tenant_id}/labels`, labelled)
  await until('the events are stored', async () => {
    const { outcomes } = await read<{ outcomes: { fraud: number; honest: number } }>(
      '/rule-performance',
    )
    return outcomes.fraud + outcomes.honest === labelled.length
  })
}
