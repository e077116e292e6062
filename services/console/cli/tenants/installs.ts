/** `di tenants rotate-install-root` and `di tenants shared-secret`: what installs sign with. */
import { type Answer, command } from '../commands.ts'
import { CliError, toTenantPath } from '../context.ts'
import { toFields } from '../tables.ts'

const path = '/tenants/{tenant_id}'

type Rotated = Answer<`${typeof path}/install-root/rotate`, 'post'>
type SharedSecret = Answer<`${typeof path}/shared-secret`, 'put'>

/** Both of the group `tenants`. */
export const installs = [
  command<{ dropOld?: true }>(
    'rotate-install-root <slug>',
    'make a new install root; tokens of the one before count until it is dropped, or until the ' +
      'next rotation. Returns once every edge makes tokens with the new one',
    [['--drop-old', 'make none, and end the one before: installs that have not renewed get 401']],
    async (context, [slug], { dropOld }) => {
      const root = `${toTenantPath(slug!)}/install-root`
      const answer = dropOld
        ? await context.adminFetch('DELETE', `${root}/previous`)
        : await context.adminFetch('POST', `${root}/rotate`)
      context.out(answer as Rotated, toRotatedText)
    },
  ),
  command<{ off?: true; on?: true }>(
    'shared-secret <slug>',
    'switch telemetry that is signed with the HMAC secret itself off or on; installs go on. ' +
      'Returns once every edge does so',
    [
      ['--off', 'refuse it with 401, batches included'],
      ['--on', 'accept it again'],
    ],
    async (context, [slug], { off, on }) => {
      if ((off === undefined) === (on === undefined)) throw new CliError('Give --off or --on.')
      const body = { off: off === true }
      const answer = await context.adminFetch('PUT', `${toTenantPath(slug!)}/shared-secret`, body)
      context.out(answer as SharedSecret, ({ tenant_id, shared_secret_off: isOff }) =>
        toFields({ tenant_id, shared_secret: isOff ? 'off: only installs send telemetry' : 'on' }),
      )
    },
  ),
]

function toRotatedText(answer: Rotated): string {
  const { confirmed_edges: confirmed, lease_expired_edges: silent } = answer
  const fields = toFields({
    tenant_id: answer.tenant_id,
    epoch: answer.epoch,
    previous_epoch: answer.previous_epoch,
  })
  const refusing =
    silent.length === 0
      ? ''
      : `; ${silent.length} did not answer and reject requests until they have it`
  return `${fields}\n\n${confirmed.length} edges confirmed${refusing}.`
}
